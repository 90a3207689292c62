"""Events that the workers write into a file themselves: Horovod's driver does not take any."""

import json
from collections.abc import Iterator
from pathlib import Path

from edt_launch.core.events import Event

KINDS = frozenset(
    {"world", "progress", "resumed", "restored", "checkpoint_skipped", "checkpointed", "checkpoint_failed"}
)
"""What workers may report."""

MOST_BYTES = 2**18
"""Bytes that are read at a time; the rest is read the next time."""

MAX_LINE = 2**16
"""Longer lines are left out."""


class Reported:
    """Follows the file that workers append their events to.

    Args:
        path: the file, which need not be there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        self._rest = b""
        self._is_skipping = False

    def new(self) -> Iterator[Event]:
        """The events that have come since the last call."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._position)
                data = file.read(MOST_BYTES)
        except OSError:  # it is not there yet; what the job has made of it is the job's own loss
            return
        self._position += len(data)
        *lines, rest = (self._rest + data).split(b"\n")
        for number, line in enumerate(lines):
            if not (number == 0 and self._is_skipping) and len(line) <= MAX_LINE:
                yield from _event(line)
        self._is_skipping = (self._is_skipping and not lines) or len(rest) > MAX_LINE
        self._rest = b"" if self._is_skipping else rest


def _event(line: bytes) -> Iterator[Event]:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return
    if isinstance(event, dict) and event.get("event") in KINDS:
        yield event
