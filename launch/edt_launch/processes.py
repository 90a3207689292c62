"""Finding and ending every process of a job, wherever it has got to on this machine."""

from collections.abc import Iterable

import psutil

from edt_launch.child import JOB_VARIABLE

REAP_TIMEOUT = 5.0
"""Seconds to wait until killed processes are gone."""


def tree(pid: int) -> set[psutil.Process]:
    """A process and all its descendants; empty if it is gone."""
    try:
        root = psutil.Process(pid)
        return {root, *root.children(recursive=True)}
    except psutil.NoSuchProcess:
        return set()


def marked(job: str) -> set[psutil.Process]:
    """All processes that have the job's mark in their environment, also those that left their parents."""
    return {process for process in psutil.process_iter() if _mark(process) == job}


def kill(processes: Iterable[psutil.Process]) -> None:
    """Kill them all and wait until they are gone."""
    alive = [process for process in processes if process.is_running()]
    for process in alive:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(alive, timeout=REAP_TIMEOUT)


def kill_job(pid: int | None, job: str, seen: Iterable[psutil.Process]) -> int:
    """Kill what is left of a job; returns how many processes that were.

    Args:
        pid: horovodrun's process; None if it is gone.
        job: the job's mark.
        seen: processes that are known to have belonged to it.
    """
    count = 0
    known = set(seen)
    # Twice or more, for what was being started while the first were killed.
    while left := {p for p in known | (tree(pid) if pid else set()) | marked(job) if _is_alive(p)}:
        count += len(left)
        kill(left)
        known = set()
        if all(_is_alive(process) for process in left):
            break  # they cannot be killed: another user's, or waiting for a device
    return count


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _mark(process: psutil.Process) -> str | None:
    try:
        return process.environ().get(JOB_VARIABLE)
    except (psutil.Error, OSError):
        return None
