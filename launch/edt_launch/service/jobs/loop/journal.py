"""Follows a job's `events.jsonl`, and goes on where an earlier process stopped.

The job can write into that file, and into the one that keeps how far it was read. So a look at it takes
bounded time and memory, whatever is there.
"""

import contextlib
import json
import logging
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO

from edt_launch.core import plain_files
from edt_launch.core.atomic import write_atomically
from edt_launch.core.event_codec import read_line
from edt_launch.core.events import Event
from edt_launch.core.lines import LONGEST, LineSplitter
from edt_launch.core.plain_files import NoFileError, open_file
from edt_launch.service.jobs.loop.progress import MAX_WORKERS, JobProgress

LOOK = 2**16
"""Bytes read in one look: they hold up the loop for a few hundredths of a second, whatever they are."""

BEHIND = 2**26
"""Bytes that are still to be read at most; of a file that has grown by more, what comes before is skipped."""

KEEP_AFTER = 2**18
"""Bytes after which what has been read is kept, so that nobody has to read them again; or as many as were
written for that last time, if these are more."""

log = logging.getLogger(__name__)


class Journal:
    """The progress of one job, as far as its events have been read.

    Args:
        events: the file of events; it may be missing.
        kept: the file in which the progress is kept, with how far it goes.
        most: workers that the job can have at most; what events say of more is refused.

    Attributes:
        is_behind: whether there was more to read than one look may.

    Raises:
        OSError: what there is cannot be read.
    """

    def __init__(self, events: Path, kept: Path, most: int = MAX_WORKERS) -> None:
        self.most = most
        self.is_behind = False
        self._events = events
        self._kept = kept
        self._kept_at, self.progress = _resumed(kept)
        self._kept_size = 0
        self._lines = LineSplitter(self._kept_at)
        self._file_number: int | None = None
        self._goal: int | None = None
        self._reported: set[str] = set()

    def read_on(self, is_final: bool = False) -> bool:
        """Read what has been written since, `LOOK` bytes at most; whether that has changed the progress.

        Args:
            is_final: whether its launcher is gone: what is appended from now on does not count, so that the
                end is reached even if somebody goes on writing.

        Raises:
            OSError: it cannot be read.
        """
        self.is_behind = False
        try:
            file = open_file(self._events, buffering=0)
        except (FileNotFoundError, NoFileError):  # the latter is the job's own doing
            return False
        with file:
            return self._read_more(file, is_final)

    def _read_more(self, file: BinaryIO, is_final: bool) -> bool:
        status = os.fstat(file.fileno())
        if self._file_number not in (None, status.st_ino) or status.st_size < self._lines.offset:
            self.progress, self._kept_at, self._goal = JobProgress(), 0, None  # another file
            self._lines = LineSplitter()
        elif status.st_size < self._at:  # a launcher has cut off half a line
            self._lines = LineSplitter(self._lines.offset)
        self._file_number = status.st_ino
        self._goal = (self._goal or status.st_size) if is_final else None
        end = status.st_size if self._goal is None else min(self._goal, status.st_size)
        if end - self._at > BEHIND:
            self._skip(end)
        return self._at < end and self._read(file, end)

    def keep(self) -> None:
        """Write down the progress. Without it the next process reads more; that is all."""
        if self._lines.offset == self._kept_at:
            return
        text = json.dumps({"offset": self._lines.offset, "progress": asdict(self.progress)})
        with contextlib.suppress(OSError):  # a full disk, say: the events are still there
            write_atomically(self._kept, text + "\n")
            self._kept_at, self._kept_size = self._lines.offset, len(text)

    @property
    def _at(self) -> int:
        return self._lines.offset + self._lines.pending

    def _read(self, file: BinaryIO, end: int) -> bool:
        before = self.progress
        self.progress, refused = self.progress.after(self._next(file), self.most)
        self.is_behind = self._at < end
        if refused:
            self._report("workers", f"events with more workers than it can have, {self.most:,}, were ignored")
        if self._lines.skipped:
            self._report("line", f"a line of more than {LONGEST:,} bytes was skipped before byte {self._at}")
        if self._lines.offset - self._kept_at >= max(KEEP_AFTER, self._kept_size):
            self.keep()
        return self.progress != before

    def _next(self, file: BinaryIO) -> Iterator[Event]:
        file.seek(self._at)
        for line in self._lines.feed(file.read(LOOK)):
            if (event := read_line(line)) is not None:
                yield event

    def _skip(self, end: int) -> None:
        start = end - BEHIND
        self._report("bytes", f"{start - self._at:,} bytes were skipped: it grows faster than it is read")
        self._lines = LineSplitter(start, is_within=True)

    def _report(self, kind: str, what: str) -> None:
        if kind not in self._reported:
            self._reported.add(kind)
            log.warning("%s: %s; this is logged once", self._events, what)


def _resumed(kept: Path) -> tuple[int, JobProgress]:
    """Where to go on from, and what was before; the beginning, if nothing sensible was kept."""
    try:
        written = json.loads(plain_files.read(kept))
        offset, progress = int(written["offset"]), JobProgress.from_json(written["progress"])
    except (FileNotFoundError, NoFileError, ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return 0, JobProgress()
    return (offset, progress) if offset >= 0 else (0, JobProgress())
