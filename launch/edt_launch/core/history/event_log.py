"""A job's `events.jsonl`, which its launcher appends to."""

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from edt_launch.core.files.appender import Appender, Complain
from edt_launch.core.files.growing_file import BLOCK_BYTES
from edt_launch.core.files.plain_files import open_file
from edt_launch.core.history.event_codec import write
from edt_launch.core.history.events import Event, Progress

E = TypeVar("E", bound=Event)

MAX_WAITING_BYTES = 2**20
"""Bytes of events that wait for room on a full disk."""


def stamped(event: E) -> E:
    """The event, as one that happens now."""
    return replace(event, time=time.time())


class EventLog:
    """Appends events to a file, each at once, so that others can follow it.

    What the file has already stays, but for half a line that a killed launcher has left at its end.
    `complain` is told when it cannot be written. Reports of progress are lost then. Other events, such as
    those that say which devices have workers, are written once there is room again, if they are not too many.

    Raises:
        OSError: what the file has cannot be read.
    """

    def __init__(self, path: Path, complain: Complain) -> None:
        _drop_half_line(path)
        self._file = Appender(path, complain, MAX_WAITING_BYTES)

    def write(self, event: Event) -> None:
        """Append an event."""
        if not (self._file.is_failing and isinstance(event, Progress)):
            self._file.write(json.dumps(write(event)) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _drop_half_line(path: Path) -> None:
    try:
        with open_file(path, "rb+") as file:
            end = file.seek(0, os.SEEK_END)
            while end:
                start = file.seek(max(0, end - BLOCK_BYTES))
                length = file.read(end - start).rfind(b"\n") + 1
                end = start + length
                if length:
                    break
            file.truncate(end)
    except FileNotFoundError:
        return
