"""Follows a job's `events.jsonl` from where it was left, also by a process that is gone."""

import contextlib
import json
from pathlib import Path

from edt_launch.hosts.allocation import write_atomically
from edt_launch.launcher.events import EventStream
from edt_launch.pool.course import Course
from edt_launch.service import plain_files
from edt_launch.service.plain_files import NoFileError, open_file

CHUNK = 2**20
"""Bytes read at once."""

KEEP_AFTER = 2**18
"""Bytes after which what has been read is kept, so that nobody has to read them again."""


class Journal:
    """The course of one job, as far as its events have been read.

    Args:
        events: the file of events; it may be missing.
        kept: the file in which the course is kept, with how far it goes.

    Raises:
        OSError: what there is cannot be read.
    """

    def __init__(self, events: Path, kept: Path) -> None:
        self._events = events
        self._kept = kept
        self._offset, self.course = _taken_up(kept)
        self._kept_at = self._offset
        self._rest = 0
        self._stream = EventStream()
        self._file_number: int | None = None

    def read_on(self) -> bool:
        """Take in what has been written since; whether that has changed the course.

        Raises:
            OSError: it cannot be read.
        """
        try:
            status = self._events.stat()
        except FileNotFoundError:
            return False
        if self._file_number not in (None, status.st_ino) or status.st_size < self._offset:
            self._offset, self.course, self._kept_at = 0, Course(), 0  # another file
            self._stream, self._rest = EventStream(), 0
        elif status.st_size < self._offset + self._rest:  # a launcher has cut off half a line
            self._stream, self._rest = EventStream(), 0
        self._file_number = status.st_ino
        if status.st_size == self._offset + self._rest:
            return False
        before = self.course
        with open_file(self._events) as file:
            file.seek(self._offset + self._rest)
            while data := file.read(CHUNK):
                self._take(data)
        if self._offset - self._kept_at >= KEEP_AFTER:
            self.keep()
        return self.course != before

    def keep(self) -> None:
        """Write down the course. Without it the next process reads more; that is all."""
        if self._offset == self._kept_at:
            return
        text = json.dumps({"offset": self._offset, "course": self.course.as_json()})
        with contextlib.suppress(OSError):  # a full disk, say: the events are still there
            write_atomically(self._kept, text + "\n")
            self._kept_at = self._offset

    def _take(self, data: bytes) -> None:
        end = data.rfind(b"\n") + 1
        for event in self._stream.feed(data):
            if not isinstance(event, str):
                self.course = self.course.observe(event)
        if end:
            self._offset += self._rest + end
            self._rest = len(data) - end
        else:
            self._rest += len(data)


def _taken_up(kept: Path) -> tuple[int, Course]:
    """Where to go on from, and what was before; the beginning, if nothing sensible was kept."""
    try:
        written = json.loads(plain_files.read(kept))
        return int(written["offset"]), Course.from_json(written["course"])
    except (FileNotFoundError, NoFileError, ValueError, KeyError, TypeError):
        return 0, Course()
