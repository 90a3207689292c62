"""Times as people write them."""

from datetime import UTC, datetime

import pytest

from edt_launch.cli.errors import MistakenError
from edt_launch.cli.times import start_time, time_limit


@pytest.mark.parametrize(
    "text, seconds",
    [("0", 0), ("90", 5400), ("2:30", 150), ("120:00", 7200), ("1:02:03", 3723), ("100:00:00", 360000),
     ("2-3", 183600), ("1-2:30", 95400), ("1-02:03:04", 93784)],
)  # fmt: skip
def test_a_time_limit_has_the_forms_of_slurm(text: str, seconds: int) -> None:
    assert time_limit("--time", text) == seconds


@pytest.mark.parametrize("text", ["", "1h", "-5", "1:2:3:4", "1-", "1-2:3:4:5", "1.5", "٣"])
def test_anything_else_is_no_time_limit(text: str) -> None:
    with pytest.raises(MistakenError, match=r"--time .* is no time limit"):
        time_limit("--time", text)


def test_a_time_to_begin_is_ahead() -> None:
    now = datetime(2026, 3, 1, 12, 30, tzinfo=UTC).astimezone()
    seconds = now.timestamp()
    assert start_time("--begin", "2h", seconds) == seconds + 7200
    assert start_time("--begin", f"{now:%H:%M}", seconds) == seconds
    assert start_time("--begin", f"{now:%H:%M}", seconds + 1) == seconds + 86400
    assert start_time("--begin", "2026-03-02T12:30Z", seconds) == seconds + 86400
    for text in ("", "soon", "25:00", "-3h"):
        with pytest.raises(MistakenError, match=r"--begin .* is no time"):
            start_time("--begin", text, seconds)
