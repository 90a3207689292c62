import pytest

from edt_launch.service.web.wording import duration, iso, moment, relative


@pytest.mark.parametrize(
    "seconds, text",
    [
        (0, "0 s"),
        (-3, "0 s"),
        (59.4, "59 s"),
        (60, "1 min"),
        (3660, "1 h 1 min"),
        (3601, "1 h"),
        (90061, "1 d 1 h"),
        (86400 * 400, "400 d"),
    ],
)
def test_durations_have_two_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_times_are_relative_to_now() -> None:
    assert relative(100, 100.5) == "now"
    assert relative(40, 100) == "1 min ago"
    assert relative(160, 100) == "in 1 min"


def test_times_in_full() -> None:
    assert moment(0) == "1970-01-01 00:00:00 UTC"
    assert iso(0) == "1970-01-01T00:00:00+00:00"
