"""Events that the workers write into a file themselves: Horovod's driver does not take any."""

from collections.abc import Iterator
from pathlib import Path

from edt_launch.launcher.events import Event
from edt_launch.lines import LineSplitter, event_of

KINDS = frozenset(
    {"world", "progress", "resumed", "restored", "checkpoint_skipped", "checkpointed", "checkpoint_failed"}
)
"""What workers may report."""

MOST_BYTES = 2**18
"""Bytes that are read at a time; the rest is read the next time."""


class Reported:
    """Follows the file that workers append their events to.

    Args:
        path: the file, which need not be there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines = LineSplitter()

    def new(self) -> Iterator[Event]:
        """The events that have come since the last call, without lines that are too long."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._lines.offset + self._lines.pending)
                data = file.read(MOST_BYTES)
        except OSError:  # it is not there yet; what the job has made of it is the job's own loss
            return
        for line in self._lines.feed(data):
            event = event_of(line)
            if event is not None and event["event"] in KINDS:
                yield event
