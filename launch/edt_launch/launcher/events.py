"""The events of a job, kept in a file."""

import json
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edt_launch.appender import Appender, Complain
from edt_launch.lines import LineSplitter

Event = Mapping[str, Any]

CHUNK = 2**16
"""Bytes read at once."""


class EventLog:
    """Appends events to a file, each at once, so that others can follow it.

    What the file has already stays, but for half a line that a killed launcher has left at its end.

    Args:
        path: the file.
        complain: told when it cannot be written; events are lost then.

    Raises:
        OSError: what the file has cannot be read.
    """

    def __init__(self, path: Path, complain: Complain) -> None:
        _drop_half_line(path)
        self._file = Appender(path, complain)

    def write(self, event: Event) -> None:
        """Append an event."""
        self._file.write(json.dumps(event) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _drop_half_line(path: Path) -> None:
    lines = LineSplitter()
    try:
        with path.open("rb+") as file:
            while data := file.read(CHUNK):
                deque(lines.feed(data), maxlen=0)  # for where the last whole line ends
            file.truncate(lines.offset)
    except FileNotFoundError:
        return


def new(event: str, **content: Any) -> Event:
    """An event of the launcher's own, that happens now."""
    return {"event": event, "time": time.time(), **content}
