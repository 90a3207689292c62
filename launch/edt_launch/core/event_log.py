"""A job's `events.jsonl`: appended to by its launcher, and read as it grows."""

import json
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from edt_launch.core.appender import Appender, Complain
from edt_launch.core.event_codec import read_line, write
from edt_launch.core.events import Event, Progress
from edt_launch.core.lines import LineSplitter
from edt_launch.core.plain_files import open_file

E = TypeVar("E", bound=Event)

LOOK = 2**18
"""Bytes that are read at once, so that a file which grows fast holds nobody up."""


KEPT = 2**20
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
        self._file = Appender(path, complain, KEPT)

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
                start = file.seek(max(0, end - LOOK))
                length = file.read(end - start).rfind(b"\n") + 1
                end = start + length
                if length:
                    break
            file.truncate(end)
    except FileNotFoundError:
        return


class EventReader:
    """Reads a file of events that others append to; it need not be there yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines = LineSplitter()

    def read(self, most: int = LOOK) -> Iterator[Event]:
        """The events that have been completed since the last call, from the next `most` bytes."""
        try:
            with open_file(self._path) as file:
                file.seek(self._lines.offset + self._lines.pending)
                data = file.read(most)
        except OSError:  # what the job has made of it is the job's own loss
            return
        for line in self._lines.feed(data):
            if (event := read_line(line)) is not None:
                yield event
