"""Finding and ending every process of a job, wherever it has got to on this machine."""

import contextlib
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path

import psutil

from edt_messages import runs
from edt_messages.runs import JobRun

JOB_VARIABLE = runs.JOB
"""Marks every process of a job, so that one that left its parents is found, too."""

REAP_TIMEOUT = 5.0
"""Seconds to wait until killed processes are gone."""

LOOK_INTERVAL = 0.02
"""Seconds between two looks whether they are."""

_START = 19
"""Where /proc/<pid>/stat has the start, after the process's name: proc_pid_stat(5)."""

KILL_TIMEOUT = 20.0
"""Seconds after which no more is looked for, though some that were killed have started others each time."""


def started(pid: int) -> float:
    """When a process was started, in seconds since the machine was: setting the clock does not change it.

    Raises:
        psutil.NoSuchProcess: there is none.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        raise psutil.NoSuchProcess(pid) from None
    ticks = stat.rpartition(")")[2].split()[_START]
    return int(ticks) / os.sysconf("SC_CLK_TCK")


def tree(pid: int) -> set[psutil.Process]:
    """A process and all its descendants; empty if it is gone."""
    try:
        root = psutil.Process(pid)
        return {root, *root.children(recursive=True)}
    except psutil.NoSuchProcess:
        return set()


def marked(job: str) -> set[psutil.Process]:
    """All processes that have the job's mark in their environment, also those that left their parents."""
    return having({JOB_VARIABLE: job})


def having(variables: Mapping[str, str]) -> set[psutil.Process]:
    """All processes whose environment has these variables."""
    wanted = variables.items()
    return {process for process in _every() if wanted <= environment(process).items()}


def mentioning(text: str) -> set[psutil.Process]:
    """All processes that have a text in their command line."""
    return {process for process in _every() if any(text in word for word in command_line(process))}


def _every() -> Iterator[psutil.Process]:
    """All processes, looked up now: psutil remembers one by its number, which may be another's since."""
    psutil.process_iter.cache_clear()
    return psutil.process_iter()


def kill(processes: Iterable[psutil.Process]) -> None:
    """Kill them all and wait until they are gone.

    Python's resource trackers remove what the others have left in shared memory and then end by themselves;
    one that does not is killed. Agents come after the others: with an agent the kernel kills whatever
    is left of its workers, the trackers included.
    """
    alive = [process for process in processes if process.is_running()]
    trackers = [process for process in alive if is_tracker(process)]
    agents = [process for process in alive if "edt_launch.agent" in command_line(process)]
    _kill_all([process for process in alive if process not in {*trackers, *agents}])
    wait_until_gone(trackers, REAP_TIMEOUT)
    _kill_all([*agents, *trackers])


def _kill_all(processes: Collection[psutil.Process]) -> None:
    for process in processes:
        kill_now(process)
    wait_until_gone(processes, REAP_TIMEOUT)


def kill_now(process: psutil.Process) -> None:
    """Kill a process, if it is there and we may; does not wait for its end."""
    with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
        process.kill()


def is_tracker(process: psutil.Process) -> bool:
    """Whether it is a resource tracker of Python's."""
    return any("multiprocessing.resource_tracker import main" in word for word in command_line(process))


def command_line(process: psutil.Process) -> list[str]:
    """What it was started by; empty if that cannot be read."""
    try:
        return process.cmdline()
    except (psutil.Error, OSError):
        return []


def wait_until_gone(processes: Iterable[psutil.Process], timeout: float) -> set[psutil.Process]:
    """Those that still run after at most `timeout` seconds.

    One that has ended and waits for its parent counts as gone: in a container there may be nobody to reap it.
    """
    deadline = time.monotonic() + timeout
    while (alive := {p for p in processes if is_alive(p)}) and time.monotonic() < deadline:
        time.sleep(LOOK_INTERVAL)
    return alive


def kill_job(pid: int | None, job: str, seen: Iterable[psutil.Process]) -> int:
    """Kill what is left of a job; returns how many processes that were.

    It is found below its first process, by its mark, and among those that were seen to belong to it.
    """
    known = set(seen)
    return _kill_those(lambda: known | (tree(pid) if pid else set()) | marked(job))


def _kill_those(find: Callable[[], set[psutil.Process]]) -> int:
    """Kill what is found, and what those were starting when they were killed; returns how many.

    What cannot be killed is left: another user's, waiting for a device, or quicker than this.
    """
    count = 0
    tried: set[psutil.Process] = set()
    deadline = time.monotonic() + KILL_TIMEOUT
    while left := {process for process in find() if is_alive(process)} - tried:
        count += len(left)
        kill(left)
        tried = left
        if time.monotonic() > deadline:
            break
    return count


def sweep(job: str, seen: Iterable[psutil.Process], grace: float) -> int:
    """End what a job has left behind whose first process is gone; returns how many had to be killed.

    They have `grace` seconds to follow it into its end.
    """
    return kill_job(None, job, wait_until_gone({*seen} | marked(job), grace))


def sweep_descendants(grace: float) -> int:
    """End every descendant of this process; returns how many had to be killed after so many seconds."""
    wait_until_gone(_descendants(), grace)
    return _kill_those(_descendants)


class LaterRunError(Exception):
    """A later run of the job has begun on this host."""

    def __init__(self, mine: int, later: int) -> None:
        super().__init__(f"this is run {mine} of the job, and run {later} of it is on this host already")


def sweep_host(environment: Mapping[str, str]) -> set[psutil.Process]:
    """Kill what agents of the job before have left on the host that this environment names.

    These are processes of the same run of the job or of earlier ones, with what they have started, and their
    agents.

    Returns:
        Those that could not be killed.

    Raises:
        LaterRunError: a later run has processes there; nothing is killed then.
    """
    marks = {name: environment[name] for name in (JOB_VARIABLE, "HOROVOD_HOSTNAME")}
    found, mine = having(marks), run_number(environment)
    if (newest := max(map(_run_of, found), default=0)) > mine:
        raise LaterRunError(mine, newest)
    agents = {parent for process in found if (parent := _agent_above(process)) is not None}
    family = {member for process in found | agents for member in tree(process.pid)}
    family -= {psutil.Process(), *psutil.Process().parents()}
    kill(family)
    return {process for process in family if is_alive(process)}


def run_number(environment: Mapping[str, str]) -> int:
    """The number of the run that a process with this environment belongs to; 0 if it does not say."""
    run = JobRun.of(environment)
    return 0 if run is None else run.number


def _run_of(process: psutil.Process) -> int:
    return run_number(environment(process))


def _agent_above(process: psutil.Process) -> psutil.Process | None:
    """The agent that is the process's parent; on remote hosts it has no mark itself."""
    try:
        parent = process.parent()
    except psutil.Error:
        return None
    return parent if parent is not None and "edt_launch.agent" in command_line(parent) else None


def kill_worker(number: int, pid: int | None) -> None:
    """Kill a worker and what it has started; does not wait for that.

    An agent is the parent of every orphan among its descendants (see `subreaper`). So what has left its
    parent is found, too: by its session, or by the worker's variables. Python's resource trackers end by
    themselves, once they have removed what others leave in shared memory.
    """
    for process in of_worker(number, pid):
        kill_now(process)


def terminate_worker(number: int, pid: int | None, *, others: bool) -> None:
    """Send SIGTERM to a worker's process, or with `others` to those that it has started instead."""
    for process in of_worker(number, pid):
        if (process.pid != pid) is others:
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                process.terminate()


def of_worker(number: int, pid: int | None) -> set[psutil.Process]:
    """The living processes of a worker, but for Python's resource trackers."""
    ours = tree(pid) if pid is not None else set()
    return {
        process
        for process in _descendants()
        if (
            process in ours
            or (pid is not None and _session(process.pid) == pid)
            or environment(process).get("EDT_WORKER") == str(number)
        )
        and is_alive(process)
        and not is_tracker(process)
    }


def _descendants() -> set[psutil.Process]:
    return set(psutil.Process().children(recursive=True))


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def is_running(pid: int) -> bool:
    """Whether there is such a process, and it has not ended."""
    try:
        return is_alive(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return False


def is_alive(process: psutil.Process) -> bool:
    """Whether it runs; one that has ended and waits for its parent does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def environment(process: psutil.Process) -> dict[str, str]:
    """What the process was started with; empty if that cannot be read."""
    try:
        return process.environ()
    except (psutil.Error, OSError):
        return {}


def number(count: int) -> str:
    """So many, in words for users."""
    return f"{count} {'process' if count == 1 else 'processes'}"
