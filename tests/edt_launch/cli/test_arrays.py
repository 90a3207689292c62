"""Indices of arrays, as Slurm writes them."""

import pytest

from edt_launch.cli.arrays import Indices, indices
from edt_launch.cli.errors import MistakenError


@pytest.mark.parametrize(
    "text, numbers, limit",
    [
        ("7", (7,), None),
        ("1-3%2", (1, 2, 3), 2),
        ("5-6,1,5", (1, 5, 6), None),
        ("0-30:10%1", (0, 10, 20, 30), 1),
    ],
)
def test_indices(text: str, numbers: tuple[int, ...], limit: int | None) -> None:
    assert indices(text) == Indices(numbers, limit)


@pytest.mark.parametrize("text", ["", "3-1", "1-", "1-3%0", "1-9:0", "1,,2", "1-1001"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(MistakenError, match="--array"):
        indices(text)
