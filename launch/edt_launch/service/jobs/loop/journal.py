"""Follows a job's `events.jsonl`, and goes on where an earlier process stopped.

The job can write into that file, and into the one that keeps how far it was read. So a look at it takes
bounded time and memory, whatever is there.
"""

import contextlib
import json
import logging
from dataclasses import asdict
from pathlib import Path

from edt_launch.core.files import plain_files
from edt_launch.core.files.atomic import write_atomically
from edt_launch.core.files.growing_file import GrowingFile
from edt_launch.core.files.lines import MAX_LINE_BYTES
from edt_launch.core.files.plain_files import NoFileError
from edt_launch.core.history.event_codec import events_of
from edt_launch.service.jobs.loop.progress import MAX_WORKERS, JobProgress

LOOK = 2**17
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

    Raises:
        OSError: what there is cannot be read.
    """

    def __init__(self, events: Path, kept: Path, most: int = MAX_WORKERS) -> None:
        self.most = most
        self._kept = kept
        self._kept_at, self.progress = _resumed(kept)
        self._kept_size = 0
        self._file = GrowingFile(events, self._kept_at, is_known=True, reach=BEHIND)
        self._goal: int | None = None
        self._refused = 0
        self._reported: set[str] = set()

    @property
    def is_behind(self) -> bool:
        """Whether there was more to read than one look may."""
        return self._file.is_behind

    def read_on(self, is_final: bool = False) -> bool:
        """Read what has been written since, `LOOK_BYTES` at most; whether that has changed the progress.

        Args:
            is_final: whether its launcher is gone: what is appended from now on does not count, so that the
                end is reached even if somebody goes on writing.

        Raises:
            OSError: it cannot be read.
        """
        before, file = self.progress, self._file
        lines = file.lines(LOOK, self._goal if is_final else None)
        if file.is_another:
            self.progress, self._kept_at, self._goal = JobProgress(), 0, None
        self._goal = (self._goal or file.size) if is_final else None
        if lines:
            self.progress, refused = self.progress.after(events_of(lines), self.most)
            self._refused += refused
        if self._refused:
            self._report("workers", f"events with more workers than it can have, {self.most:,}, were ignored")
        if file.skipped_lines:
            self._report(
                "line", f"a line of more than {MAX_LINE_BYTES:,} bytes was skipped before byte {file.size}"
            )
        if file.skipped:
            self._report("bytes", f"{file.skipped:,} bytes were skipped: it grows faster than it is read")
        if file.offset - self._kept_at >= max(KEEP_AFTER, self._kept_size):
            self.keep()
        return self.progress != before

    def keep(self) -> None:
        """Write down the progress. Without it the next process reads more; that is all."""
        offset = self._file.offset
        if offset == self._kept_at:
            return
        text = json.dumps({"offset": offset, "progress": asdict(self.progress)})
        with contextlib.suppress(OSError):  # a full disk, say: the events are still there
            write_atomically(self._kept, text + "\n")
            self._kept_at, self._kept_size = offset, len(text)

    def _report(self, kind: str, what: str) -> None:
        if kind not in self._reported:
            self._reported.add(kind)
            log.warning("%s: %s; this is logged once", self._file.path, what)


def _resumed(kept: Path) -> tuple[int, JobProgress]:
    """Where to go on from, and what was before; the beginning, if nothing sensible was kept."""
    try:
        written = json.loads(plain_files.read(kept))
        offset, progress = int(written["offset"]), JobProgress.from_json(written["progress"])
    except (FileNotFoundError, NoFileError, ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return 0, JobProgress()
    return (offset, progress) if offset >= 0 else (0, JobProgress())
