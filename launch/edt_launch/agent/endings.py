"""Killing what an agent's workers have started, as far as it descends from the agent.

The agent is the parent of every orphan among its descendants, see `subreaper`; so it finds those, too, that
have left their sessions and their parents. What takes time to import is imported when it is needed.
"""

import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

LOOK_INTERVAL = 0.02
"""Seconds between two looks whether processes have ended."""


def is_running(pid: int) -> bool:
    """Whether there is such a process, and it has not ended."""
    import psutil

    from edt_launch.agent import processes

    try:
        return processes.is_alive(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return False


def kill_worker(number: int, pid: int | None) -> None:
    """Kill a worker and what it has started; does not wait for that.

    Python's resource trackers end by themselves, once they have removed what others leave in shared memory.
    """
    from edt_launch.agent import processes

    for process in _of_worker(number, pid):
        if not processes.is_tracker(process):
            processes.kill_now(process)


def sweep(grace: float) -> int:
    """End every descendant of this process; returns how many had to be killed after so many seconds."""
    if not _has_children():
        return 0
    from edt_launch.agent import processes

    deadline = time.monotonic() + grace
    while (left := {p for p in _descendants() if processes.is_alive(p)}) and time.monotonic() < deadline:
        _reap()
        time.sleep(LOOK_INTERVAL)
    count = 0
    deadline = time.monotonic() + processes.KILL_TIMEOUT
    while left and time.monotonic() < deadline:  # twice or more, for what was started meanwhile
        count += len(left)
        processes.kill(left)
        _reap()
        left = {p for p in _descendants() if processes.is_alive(p)} - left
    return count


def sweep_job(environment: Mapping[str, str]) -> None:
    """Kill what an earlier agent of the job and host that this environment names has left."""
    from edt_launch.agent import processes

    marks = {name: environment[name] for name in (processes.JOB_VARIABLE, "HOROVOD_HOSTNAME")}
    processes.kill(process for process in processes.having(marks) if process.pid != os.getpid())


def _has_children() -> bool:
    """Whether this process has any children, ended or not."""
    _reap()
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def _descendants() -> "list[psutil.Process]":
    import psutil

    return psutil.Process().children(recursive=True)


def _of_worker(number: int, pid: int | None) -> "list[psutil.Process]":
    """A worker's process, what descends from it, and what has its session or its variables."""
    from edt_launch.agent import processes

    ours = processes.tree(pid) if pid is not None else set()
    return [
        process
        for process in _descendants()
        if process in ours
        or (pid is not None and _session(process.pid) == pid)
        or processes.environment(process).get("EDT_WORKER") == str(number)
    ]


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None
