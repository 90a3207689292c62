import logging
from typing import Any

from edt_launch.service import log_filter
from edt_launch.service.log_filter import RepeatFilter


class Log:
    """Lines through a filter, at times of the test's own."""

    def __init__(self) -> None:
        self.now = 0.0
        self.filter = RepeatFilter(lambda: self.now)

    def line(self, message: Any, number: int = 1) -> str | None:
        record = logging.LogRecord("a", logging.WARNING, "file.py", number, message, (), None)
        shown = self.filter.filter(record)
        return str(record.msg) if shown else None


def test_lines_that_repeat_are_counted() -> None:
    log = Log()
    lines = [log.line(f"failed {number}") for number in range(log_filter.MOST + 30)]
    assert [line for line in lines if line] == [f"failed {number}" for number in range(log_filter.MOST)]
    assert log.line("something else", 2) == "something else"
    log.now = log_filter.WINDOW
    assert log.line("failed again") == "failed again (30 lines like this were left out before it)"
    assert log.line("and again") == "and again"
