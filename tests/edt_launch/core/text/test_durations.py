import pytest

from edt_launch.core.text.durations import duration


@pytest.mark.parametrize(
    "seconds, text",
    [
        (None, "-"),
        (-3, "0s"),
        (59.6, "1m"),
        (3660, "1h 1m"),
        (3605, "1h"),
        (90061, "1d 1h"),
        (86400 * 400, "400d"),
    ],
)
def test_durations_have_two_units(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text
