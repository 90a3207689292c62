"""What workers report, as they say it themselves."""

import math

import pytest

from edt_launch.core.events import Progress


@pytest.mark.parametrize(
    "value, number",
    [
        (2, 2),
        (0.5, 0.5),
        (-1.0, -1.0),
        ("2", None),
        (True, None),
        (math.nan, None),
        (math.inf, None),
        (10**301, None),
    ],
)
def test_only_numbers_are_numbers(value: float | str, number: float | None) -> None:
    assert Progress(1, 0, 1, {"loss": value}).number("loss") == number
    assert Progress(1, 0, 1).number("loss") is None
