"""The workers' output: from horovodrun's two streams back to lines that know whose they are.

Horovod prefixes each line with ``[<serial>]<stdout>:`` or ``[<serial>]<stderr>:`` and ends it with what the
worker ended it with: a newline, a carriage return (progress bars), or nothing (its last words). What has no
prefix is horovodrun's own.
"""

import codecs
import re
from collections import deque
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from edt_launch.appender import Appender, Complain
from edt_launch.run_dir import RunDir

MAX_LINE = 2**16
"""Characters after which a line without an end is broken."""

OVERWRITE_INTERVAL = 1.0
"""Seconds between two shown states of a line that overwrites itself."""

LAST_LINES = 20
"""Lines of a worker that a message about its failure shows."""

KEPT_LINES = 100
"""Lines of each worker that are kept to see why it failed: those of a traceback, however deep it is."""

DRIVER = -1
"""Stands where a worker's serial number does, for the process that runs a script for all workers."""

_PREFIX = re.compile(r"\[(\d{1,9})\]<(stdout|stderr)>:")
_END = re.compile(r"([\r\n])")
_LOST_A_PEER = re.compile(
    r"\[[^\]]*operations\.cc:\d+\] \[\d+\]: Horovod "
    r"(background loop uncaught exception: \[\S*gloo/"
    r"|could not be initialized: \[(enforce fail at )?\S*gloo/transport/)"
)


@dataclass(frozen=True)
class Line:
    """A line of output, without its end.

    Attributes:
        worker: serial number of the worker, or `DRIVER`; None for horovodrun itself.
        stream: "stdout" or "stderr".
        text: the line.
    """

    worker: int | None
    stream: str
    text: str


def is_for_the_log(line: Line) -> bool:
    """Whether it is what Horovod says when a worker has lost another one, which edt-launch tells in words."""
    return line.worker is not None and _LOST_A_PEER.match(line.text) is not None


class Demultiplexer:
    """Takes one stream of horovodrun apart, or of a worker's own.

    Args:
        stream: "stdout" or "stderr", for what has no prefix.
        known: serial numbers of the workers there have been, for finding a prefix behind a line without end.
        worker: whose all of it is, without prefixes; None for horovodrun's stream.
    """

    def __init__(self, stream: str, known: Container[int] = (), worker: int | None = None) -> None:
        self._stream = stream
        self._known = known
        self._worker = worker
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._rest = ""
        self._origin: tuple[int | None, str] | None = None
        """Whose the broken line is of which `_rest` is the continuation."""
        self._held: dict[tuple[int | None, str], str] = {}
        self._shown_at: dict[tuple[int | None, str], float] = {}
        self._overwriting: set[tuple[int | None, str]] = set()

    def feed(self, now: float, data: bytes) -> Iterator[Line]:
        """The lines that `data` completes.

        Of a line that overwrites itself (ends with a carriage return), one state each `OVERWRITE_INTERVAL`
        is given.

        Args:
            now: seconds of a monotonic clock.
            data: what was read; it may end anywhere, also within a character.
        """
        *ended, rest = _END.split(self._decode(data))
        for text, end in zip(ended[::2], ended[1::2], strict=True):
            whole, self._rest = self._rest + text, ""
            yield from self._complete(now, whole, overwritten=end == "\r")
        self._rest += rest
        if len(self._rest) > MAX_LINE:
            text, self._rest = self._rest, ""
            parts = self._split(text)
            for origin, part in parts:
                yield from _broken(origin, part)
            self._origin = parts[-1][0]

    def close(self) -> Iterator[Line]:
        """The lines that nothing completes any more."""
        self._rest += self._decode(b"", True)
        if self._rest:
            text, self._rest = self._rest, ""
            yield from self._complete(float("inf"), text, overwritten=False)
        for origin, text in self._held.items():
            yield Line(*origin, text)
        self._held.clear()

    def _complete(self, now: float, text: str, overwritten: bool) -> Iterator[Line]:
        is_continued = self._origin is not None
        *whole, (origin, last) = self._split(text)
        self._origin = None
        for other, part in whole:
            yield from _broken(other, part)
        if overwritten:
            yield from self._overwrite(now, origin, last)
            return
        held = self._held.pop(origin, None)
        was_overwriting = origin in self._overwriting
        self._overwriting.discard(origin)
        if last or not (was_overwriting or is_continued):
            yield from _broken(origin, last)
        elif held is not None:  # "text\r\n", or a bar that ends with a newline alone
            yield Line(*origin, held)

    def _overwrite(self, now: float, origin: tuple[int | None, str], text: str) -> Iterator[Line]:
        if not text:  # a bar begins with a carriage return
            return
        self._overwriting.add(origin)
        if now - self._shown_at.get(origin, float("-inf")) >= OVERWRITE_INTERVAL:
            self._shown_at[origin] = now
            self._held.pop(origin, None)
            yield Line(*origin, text)
        else:
            self._held[origin] = text

    def _split(self, text: str) -> list[tuple[tuple[int | None, str], str]]:
        """Whose it is; more than one part where a worker's last words have no end."""
        if self._worker is not None:
            return [((self._worker, self._stream), text)]
        origin, at = self._origin or (None, self._stream), 0
        parts: list[tuple[tuple[int | None, str], str]] = []
        for prefix in _PREFIX.finditer(text):
            serial = int(prefix[1])
            if prefix.start() == 0 and self._origin is None:
                origin, at = (serial, prefix[2]), prefix.end()
            elif prefix.start() > at and serial in self._known:
                parts.append((origin, text[at : prefix.start()]))
                origin, at = (serial, prefix[2]), prefix.end()
        return [*parts, (origin, text[at:])]


def _broken(origin: tuple[int | None, str], text: str) -> Iterator[Line]:
    """The line, in pieces if it is very long."""
    for at in range(0, len(text) or 1, MAX_LINE):
        yield Line(*origin, text[at : at + MAX_LINE])


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

    def observe(self, event: Mapping[str, Any]) -> None:
        """Take in an event of the job; most are of no interest."""
        match event:
            case {"event": "started", "worker": int(worker), "rank": int(rank)}:
                taken = {label for other, label in self._labels.items() if other not in self._gone}
                self._labels[worker] = f"w{worker}" if str(rank) in taken else str(rank)
            case {"event": "world", "ranks": dict(ranks)}:
                placed = {int(worker): str(rank) for worker, rank in ranks.items()}
                taken = set(placed.values())
                for worker, label in self._labels.items():
                    # The dead's last lines still come. Who leaves keeps its name unless it is taken.
                    keeps = worker in self._gone or label not in taken
                    placed.setdefault(worker, label if keeps else f"w{worker}")
                self._labels = placed
            case {"event": "left" | "failed", "worker": int(worker)}:
                self._gone.add(worker)


class Logs:
    """The log files of a job, and the last lines of each worker.

    Args:
        paths: the job's.
        complain: told of a file that cannot be written; lines are lost then.
    """

    def __init__(self, paths: RunDir, complain: Complain) -> None:
        self._paths = paths
        self._complain = complain
        self._files: dict[str, Appender] = {}
        self._last: dict[int, deque[str]] = {}
        self._horovodrun: deque[str] = deque(maxlen=KEPT_LINES)

    def begin(self) -> None:
        """Another horovodrun begins: what the last one has said explains nothing about it."""
        self._horovodrun.clear()

    def write(self, line: Line, label: str | None) -> None:
        """Log a line of the worker called `label`; None for horovodrun."""
        if line.worker is None or label is None:
            path = self._paths.horovodrun_log
            self._horovodrun.append(line.text)
        else:
            path = self._paths.rank_log(label)
            self._last.setdefault(line.worker, deque(maxlen=KEPT_LINES)).append(line.text)
        file = self._files.get(path.name)
        if file is None:
            file = self._files[path.name] = Appender(path, self._complain)
        file.write(line.text + "\n")

    def last_lines(self, worker: int | None, count: int = LAST_LINES) -> tuple[str, ...]:
        """The last lines of a worker, or of horovodrun (None), oldest first; `KEPT_LINES` at the most."""
        kept = tuple(self._horovodrun if worker is None else self._last.get(worker, ()))
        return kept[-count:]

    def flush(self) -> None:
        """Let readers see everything written so far."""
        for file in self._files.values():
            file.flush()

    def close(self) -> None:
        """Close all files."""
        for file in self._files.values():
            file.close()
        self._files.clear()
