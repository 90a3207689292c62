"""Counts log lines that repeat instead of repeating them: what fails does so again and again."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from typing_extensions import override

WINDOW = 60.0
"""Seconds in which lines are counted."""

MAX_LINES = 20
"""Lines of one kind that are shown in a window."""

MAX_KINDS = 1000
"""Kinds that are counted; when there are more, counting begins anew."""


@dataclass
class _Count:
    since: float
    lines: int = 0


class RepeatFilter(logging.Filter):
    """Shows `MAX_LINES` lines of each kind in a window, and then one that says how many were left out.

    Lines are of one kind if they come from the same statement, or are the same structured event.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._counts: dict[object, _Count] = {}

    @override
    def filter(self, record: logging.LogRecord) -> bool:
        now = self._clock()
        if len(self._counts) > MAX_KINDS:
            self._counts.clear()
        count = self._counts.setdefault(_kind_of(record), _Count(now))
        left_out = count.lines - MAX_LINES
        if now - count.since >= WINDOW:
            count.since, count.lines = now, 0
            if left_out > 0:
                _note(record, f"{left_out:,} lines like this were left out before it")
        count.lines += 1
        return count.lines <= MAX_LINES


def _kind_of(record: logging.LogRecord) -> object:
    if isinstance(record.msg, dict):  # structlog's; all come from the same statement
        return record.name, str(record.msg.get("event"))
    return record.name, record.pathname, record.lineno


def _note(record: logging.LogRecord, text: str) -> None:
    if isinstance(record.msg, dict):
        record.msg = {**record.msg, "repeated": text}
    else:
        record.msg, record.args = f"{record.getMessage()} ({text})", ()
