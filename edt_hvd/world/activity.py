"""Whether a process that does not get on works or only waits: what tells a long evaluation from a hang.

Looked at are the threads that Python knows, less ours, and all descendants, as Linux shows them in ``/proc``.
Horovod's thread is not among them: it is busy while everybody waits. Who waits for a processor or a disk
works, too.
"""

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

BUSY_SHARE = 0.015
"""Processor seconds a second that are work; less is what waiting with a timeout takes."""

_BUSY = ("R", "D")
"""Linux's states of who runs or could, and of who waits for a disk."""

_OWN = "edt-"
"""How the names of our own threads begin."""

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class ProcessSample:
    """What a process was seen to do at one moment.

    Attributes:
        at: seconds of a monotonic clock.
        used: processor seconds of each thread and descendant so far, by its number.
        is_busy: whether one of them runs, or waits for a processor or a disk.
    """

    at: float
    used: dict[int, float]
    is_busy: bool


def has_worked(before: ProcessSample | None, after: ProcessSample | None) -> bool:
    """Whether work was done between two samples; true if one of them is missing."""
    if before is None or after is None or after.is_busy or after.used.keys() - before.used.keys():
        return True
    used = sum(seconds - before.used[key] for key, seconds in after.used.items())
    return used >= BUSY_SHARE * (after.at - before.at)


def sample(now: float) -> ProcessSample | None:
    """The sample of now; None where the system does not provide it."""
    try:
        places = [*_threads(), *_descendants(_PROC / "self")]
    except OSError:
        return None
    stats = {int(place.name): stat for place in places if (stat := _stat(place)) is not None}
    used = {key: seconds for key, (_, seconds) in stats.items()}
    return ProcessSample(now, used, any(state in _BUSY for state, _ in stats.values()))


def _threads() -> Iterator[Path]:
    for thread in threading.enumerate():
        if thread is threading.main_thread():
            yield _PROC / "self" / "task" / str(os.getpid())
        elif not thread.name.startswith(_OWN) and thread.native_id is not None:
            yield _PROC / "self" / "task" / str(thread.native_id)


def _descendants(process: Path) -> Iterator[Path]:
    """All descendants; empty for a process that has gone.

    Raises:
        OSError: the system does not tell them.
    """
    for task in process.glob("task/*"):
        try:
            children = (task / "children").read_text().split()
        except (FileNotFoundError, ProcessLookupError):
            if task.exists():
                raise
            continue
        for child in children:
            yield _PROC / child
            yield from _descendants(_PROC / child)


def _stat(place: Path) -> tuple[str, float] | None:
    """The state and the processor seconds of a process or thread; None if it has gone."""
    try:
        return parse_stat((place / "stat").read_text())
    except OSError:
        return None


def parse_stat(text: str) -> tuple[str, float]:
    """The state and the processor seconds in the text of Linux's ``stat`` of a process or thread."""
    words = text.rpartition(")")[2].split()
    return words[0], (int(words[11]) + int(words[12])) / _TICKS
