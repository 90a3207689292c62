"""Messages of launcher and drivers: what is refused."""

import json
from typing import Any

import pytest

from edt_messages import wmla
from edt_messages.codec import MessageError
from edt_messages.wmla import decode, encode

TRAIN = encode(wmla.Train(1, ("python", "-m", "x"), 16))


@pytest.mark.parametrize(
    "wrong",
    [
        {"number": 0},
        {"program": []},
        {"program": ["x", 1]},
        {"program": "x"},
        {"max_workers": 0},
        {"max_workers": 2**20 + 1},
        {"max_workers": "2"},
    ],
)
def test_a_training_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(MessageError, match=f"is no message: {name}: "):
        decode(json.dumps(json.loads(TRAIN) | wrong).encode())
