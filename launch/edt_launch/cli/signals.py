"""Signals that end a process, as exceptions: so that everything is put right on the way out."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

ENDING = (signal.SIGTERM, signal.SIGHUP)
"""Signals that would otherwise end the process at once."""


@contextmanager
def as_exits() -> Iterator[None]:
    """Have them raise SystemExit meanwhile, with the exit code that a shell gives to such an end."""
    before = {number: signal.signal(number, _exit) for number in ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _exit(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)
