"""What `torch.load(weights_only=True)` refuses travels as bytes, the rest as it is."""

import io
from collections import OrderedDict, deque, namedtuple
from typing import Any

import numpy as np
import pytest
import torch

from edt_hvd.errors import StateError
from edt_hvd.state.checkpoint.portable import PICKLED, decode, encode

Point = namedtuple("Point", "x y")  # noqa: PYI024 - what a script may have in its state


def through_a_file(value: Any) -> Any:
    file = io.BytesIO()
    torch.save(encode(value), file)
    file.seek(0)
    return decode(torch.load(file, weights_only=True))


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 10**30, 0.1, 1j, "text", b"\x00\xff", torch.Size([2]), torch.bfloat16),
        *({1: "a", "b": (2, [3])}, OrderedDict(z=1, a=2), (), [], {}),
        *({1, 2}, deque([1, 2]), Point(1, 2), np.float32(0.5), {(1, 2): 3}, {PICKLED: b"mine", "x": 1}),
        *({PICKLED: b"mine"}, [{PICKLED: {PICKLED: 1}}], range(3)),
    ],
    ids=repr,
)
def test_values_come_back_as_they_were(value: Any) -> None:
    found = through_a_file({"value": value})["value"]
    assert type(found) is type(value)
    assert found == value


def test_tensors_and_plain_values_are_not_pickled() -> None:
    value = {"model": OrderedDict(weight=torch.arange(3)), "steps": (1, [2.0])}
    assert encode(value) is not value
    assert encode(value)["model"]["weight"] is value["model"]["weight"]
    assert PICKLED not in str(encode(value))


def test_what_cannot_be_pickled_is_named() -> None:
    with pytest.raises(StateError, match=r"state\.model\.hooks\[1\], a function, cannot be pickled"):
        encode({"model": {"hooks": [1, lambda: None]}})
