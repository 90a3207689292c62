"""The workers' output: lines that know whose they are, and the files that they go to.

A line ends with a newline, a carriage return (progress bars), or nothing (last words).
"""

import codecs
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from edt_launch.core.files.appender import Appender, Complain
from edt_launch.core.history import events
from edt_launch.core.run_dir import RunDir

MAX_LINE = 2**16
"""Characters after which a line without an end is broken."""

OVERWRITE_INTERVAL = 1.0
"""Seconds between two shown states of a line that overwrites itself."""

LAST_LINES = 20
"""Lines of a worker that a message about its failure shows."""

KEPT_LINES = 100
"""Lines of each worker that are kept to see why it failed: those of a traceback, however deep it is."""

LONGEST_KEPT = 4000
"""Characters of such a line; the log has all of it."""

DRIVER = -1
"""Stands where a worker's serial number does, for the process that runs a script for all workers."""

_END = re.compile(r"([\r\n])")
_LOST_A_PEER = re.compile(
    r"\[[^\]]*operations\.cc:\d+\] \[\d+\]: Horovod "
    r"(background loop uncaught exception: \[\S*gloo/"
    r"|could not be initialized: \[(enforce fail at )?\S*gloo/transport/)"
)


@dataclass(frozen=True)
class Line:
    """A line of output of a worker, of the `DRIVER` or of edt-launch itself (None), without its end."""

    worker: int | None
    stream: str
    text: str
    prefix: str | None = None
    """What stands before it on the screen; None for the rank in brackets."""
    is_shown: bool = True
    """Whether it is for the screen, too; the logs have every line."""
    is_copied: bool = False
    """Whether the program has it in a file of its own."""


def is_for_the_log(line: Line) -> bool:
    """Whether it is what Horovod says when a worker has lost another one, which edt-launch tells in words."""
    return line.worker is not None and _LOST_A_PEER.match(line.text) is not None


class LineReader:
    """Lines of one stream ("stdout" or "stderr") of a worker, from whatever pieces of it have been read."""

    def __init__(self, stream: str, worker: int) -> None:
        self._stream = stream
        self._worker = worker
        self._decode = codecs.getincrementaldecoder("utf-8")("backslashreplace").decode
        self._rest = ""
        self._is_continued = False
        """Whether `_rest` continues a line that was broken."""
        self._held: str | None = None
        self._shown_at = float("-inf")
        self._is_overwriting = False

    def feed(self, now: float, data: bytes) -> Iterator[Line]:
        """The lines that `data` completes, which may end anywhere, also within a character.

        Of a line that overwrites itself (ends with a carriage return), one state each `OVERWRITE_INTERVAL`
        is given; `now` are seconds of a monotonic clock.
        """
        *ended, rest = _END.split(self._decode(data))
        for text, end in zip(ended[::2], ended[1::2], strict=True):
            whole, self._rest = self._rest + text, ""
            yield from self._complete(now, whole, overwritten=end == "\r")
        self._rest += rest
        if len(self._rest) > MAX_LINE:
            text, self._rest, self._is_continued = self._rest, "", True
            yield from self._broken(text)

    def close(self) -> Iterator[Line]:
        """The lines that nothing completes any more."""
        self._rest += self._decode(b"", True)
        if self._rest:
            text, self._rest = self._rest, ""
            yield from self._complete(float("inf"), text, overwritten=False)
        if self._held is not None:
            yield self._line(self._held)
            self._held = None

    def _line(self, text: str) -> Line:
        return Line(self._worker, self._stream, text)

    def _broken(self, text: str) -> Iterator[Line]:
        """The line, in pieces if it is very long."""
        for at in range(0, len(text) or 1, MAX_LINE):
            yield self._line(text[at : at + MAX_LINE])

    def _complete(self, now: float, text: str, overwritten: bool) -> Iterator[Line]:
        is_continued, self._is_continued = self._is_continued, False
        if overwritten:
            yield from self._overwrite(now, text)
            return
        held, self._held = self._held, None
        was_overwriting, self._is_overwriting = self._is_overwriting, False
        if text or not (was_overwriting or is_continued):
            yield from self._broken(text)
        elif held is not None:  # "text\r\n", or a bar that ends with a newline alone
            yield self._line(held)

    def _overwrite(self, now: float, text: str) -> Iterator[Line]:
        if not text:  # a bar begins with a carriage return
            return
        self._is_overwriting = True
        if now - self._shown_at >= OVERWRITE_INTERVAL:
            self._shown_at, self._held = now, None
            yield self._line(text)
        else:
            self._held = text


class Ranks:
    """Which worker has which rank now, from the job's events."""

    def __init__(self) -> None:
        self._labels: dict[int, str] = {DRIVER: "driver"}
        self._gone: set[int] = set()

    def __contains__(self, worker: object) -> bool:
        return worker in self._labels

    def label(self, worker: int) -> str:
        """Its rank, or 'w' and its serial number while it has none of its own."""
        return self._labels.get(worker, f"w{worker}")

    def observe(self, event: events.Event) -> None:
        """Take in an event of the job; most are of no interest."""
        match event:
            case events.Started(worker, rank=rank):
                taken = {label for other, label in self._labels.items() if other not in self._gone}
                self._labels[worker] = f"w{worker}" if str(rank) in taken else str(rank)
            case events.World(ranks=ranks):
                placed = {worker: str(rank) for worker, rank in ranks.items()}
                taken = set(placed.values())
                for worker, label in self._labels.items():
                    # The dead's last lines still come. Who leaves keeps its name unless it is taken.
                    keeps = worker in self._gone or label not in taken
                    placed.setdefault(worker, label if keeps else f"w{worker}")
                self._labels = placed
            case events.Left(worker) | events.Failed(worker):
                self._gone.add(worker)


class Logs:
    """The log files of a job, and the last lines of each worker. Lines that cannot be written are lost.

    Each line is kept once: in a file for each worker or, if `is_single`, in one for all of them. A file has
    no more than `limit` bytes; None for no limit.
    """

    def __init__(
        self, paths: RunDir, complain: Complain, limit: int | None = None, *, is_single: bool = False
    ) -> None:
        self._paths = paths
        self._limit = limit
        self.is_single = is_single
        self._complain = complain
        self._files: dict[str, Appender] = {}
        self._last: dict[int | None, deque[str]] = {}

    def begin(self) -> None:
        """The workers are started again: what was said before explains nothing about that."""
        self._last.pop(None, None)

    def path_of(self, label: str) -> Path:
        """The log of the worker called `label`."""
        return self._paths.job_log if self.is_single else self._paths.rank_log(label)

    def write(self, line: Line, label: str | None, *, is_hidden: bool = False) -> None:
        """Log a line of the worker called `label`; None for edt-launch itself.

        The one log of all workers has what a user sees. What `is_hidden` is in edt-launch's own instead.
        """
        worker = line.worker if label is not None else None
        self._last.setdefault(worker, deque(maxlen=KEPT_LINES)).append(line.text[:LONGEST_KEPT])
        if label is None:
            self._append(self._paths.own_log, line.text)
        elif not self.is_single:
            self._append(self._paths.rank_log(label), line.text)
        elif not is_hidden:
            self._append(self._paths.job_log, f"[{label}] {line.prefix or ''}{line.text}")
        elif not line.is_copied:
            self._append(self._paths.own_log, f"[{label}] {line.text}")

    def _append(self, path: Path, text: str) -> None:
        file = self._files.get(path.name)
        if file is None:
            file = self._files[path.name] = Appender(path, self._complain, limit=self._limit)
        file.write(text + "\n")

    def last_lines(self, worker: int | None, count: int = LAST_LINES) -> tuple[str, ...]:
        """The last lines of a worker, or of edt-launch (None), oldest first; `KEPT_LINES` at the most."""
        return tuple(self._last.get(worker, ()))[-count:]

    def flush(self) -> None:
        """Let readers see everything written so far."""
        for file in self._files.values():
            file.flush()

    def close(self) -> None:
        """Close all files."""
        for file in self._files.values():
            file.close()
        self._files.clear()
