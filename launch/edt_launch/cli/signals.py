"""Signals that end a process, as exceptions: so that everything is put right on the way out."""

import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

ENDING = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def handled(numbers: Iterable[signal.Signals], handler: Callable[[int, Any], Any] | int) -> Iterator[None]:
    """Have signals handled by `handler` meanwhile."""
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def as_exits() -> AbstractContextManager[None]:
    """Have ending signals raise SystemExit, with the exit code that a shell gives to such an end."""
    return handled(ENDING, lambda number, _: sys.exit(128 + number))
