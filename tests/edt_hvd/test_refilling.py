"""Contents of copies in objects that stay the same ones."""

from collections import deque
from typing import Any

import numpy as np
import pytest
import torch

from edt_hvd.refilling import refilled


@pytest.mark.parametrize(
    "own, new",
    [
        ([1], [2, 3]),
        ({"a": 1}, {"b": 2}),
        ({1}, {2}),
        (deque([1]), deque([2])),
        (bytearray(b"a"), bytearray(b"bc")),
    ],
)
def test_what_has_contents_of_its_own_stays_the_same_object(own: Any, new: Any) -> None:
    assert refilled(own, new) is own
    assert own == new


@pytest.mark.parametrize(
    "own, new",
    [
        ([1], (1,)),
        (torch.zeros(2), torch.zeros(3)),
        (np.zeros(2), np.zeros(3)),
        (len, max),
        (print, pytest.raises),
    ],
)
def test_what_cannot_be_refilled_is_replaced(own: Any, new: Any) -> None:
    assert refilled(own, new) is new
