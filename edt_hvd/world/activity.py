"""Samples of the process, by which a long evaluation is distinguished from a hang; its private memory.

A sample has the threads that Python knows, except our own, and all descendants. Horovod's thread is not
among them: it is busy while everybody waits. Waiting for a processor or a disk counts as work.
"""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import psutil

BUSY_SHARE = 0.015
"""Processor seconds per second that count as work; waiting with a timeout takes less."""

_BUSY = (psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP)

_OWN = "edt-"
"""How the names of our own threads begin."""


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
    process = psutil.Process()
    try:
        found = [*_threads(process), *_descendants(process)]
    except (psutil.Error, OSError):
        return None
    return ProcessSample(now, {key: used for key, used, _ in found}, any(busy for *_, busy in found))


def private_memory() -> int | None:
    """Bytes of memory that this process shares with no other; None where the system does not show it."""
    try:
        return int(psutil.Process().memory_full_info().uss)
    except psutil.Error:
        return None


def _threads(process: psutil.Process) -> Iterator[tuple[int, float, bool]]:
    """Number, processor seconds and whether it is busy, of each thread."""
    used = {thread.id: thread.user_time + thread.system_time for thread in process.threads()}
    for thread in threading.enumerate():
        if thread.native_id in used and not thread.name.startswith(_OWN):
            with contextlib.suppress(psutil.NoSuchProcess):  # it has ended meanwhile
                yield thread.native_id, used[thread.native_id], _is_busy(psutil.Process(thread.native_id))


def _descendants(process: psutil.Process) -> Iterator[tuple[int, float, bool]]:
    for child in process.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess), child.oneshot():
            times = child.cpu_times()
            yield child.pid, times.user + times.system, _is_busy(child)


def _is_busy(process: psutil.Process) -> bool:
    return process.status() in _BUSY
