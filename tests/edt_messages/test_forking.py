"""Messages of agents and warm servers: what is refused."""

import json
from typing import Any

import pytest

from edt_messages import forking
from edt_messages.codec import MessageError
from edt_messages.forking import decode, encode

REQUEST = forking.Fork("train.py", None, ("-e",), ("python", "train.py"), "/a b", {"OWN": "x"}, 0o022, (1,))


def test_a_request_has_room_for_an_environment() -> None:
    large = forking.Fork(None, "x", (), (), "/", {"LARGE": "x" * 2**21}, 0)
    assert decode(encode(large)) == large


@pytest.mark.parametrize("wrong", [{"environment": {"A": 1}}, {"arguments": None}, {"umask": -1}])
def test_a_request_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(MessageError, match=f"is no message: {name}: "):
        decode(json.dumps(json.loads(encode(REQUEST)) | wrong).encode())
