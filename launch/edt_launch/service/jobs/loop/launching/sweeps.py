"""What jobs whose launchers are gone have left: looked for and ended in threads, for the loop never waits.

A look at all processes, the end of a process and the name of a host can take seconds each.
"""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

from edt_launch.agent.system import processes
from edt_launch.cluster.network import HostChecker

AT_A_TIME = 4
"""Jobs that are looked at at the same time."""


@dataclass(frozen=True)
class Found:
    """What a sweep has found.

    Attributes:
        processes: of the job, on this machine, that could not be ended.
        remote: hosts of its workers that are other machines.
    """

    processes: frozenset[int] = frozenset()
    remote: frozenset[str] = frozenset()


Sweep = Callable[[Path, Iterable[str]], Found]


@dataclass
class _Task:
    train: Path
    hosts: frozenset[str]
    found: Found | None = None
    is_under_way: bool = True


class Sweeps:
    """One sweep a job at a time; its result is there at a later look.

    Args:
        sweep: what a thread does; by default, end all processes of the job.
    """

    def __init__(self, sweep: Sweep | None = None) -> None:
        self._sweep = sweep or _HostSweep()
        self._tasks: dict[str, _Task] = {}
        self._turns = threading.Semaphore(AT_A_TIME)

    def found(self, job: str) -> Found | None:
        """What the last sweep of the job has found; None if none has ended yet."""
        task = self._tasks.get(job)
        return task.found if task is not None else None

    def is_under_way(self, job: str) -> bool:
        """Whether a sweep of the job has not ended yet."""
        task = self._tasks.get(job)
        return task is not None and task.is_under_way

    def begin(self, job: str, train: Path, hosts: frozenset[str]) -> None:
        """Begin a sweep, unless one is under way.

        Args:
            job: its id.
            train: its folder for the model, which marks its processes.
            hosts: those of its workers.
        """
        if not self.is_under_way(job):
            before = self.found(job)
            self._tasks[job] = task = _Task(train, hosts, before)
            threading.Thread(target=self._run, args=[task], name="edt-sweep", daemon=True).start()

    def again(self, job: str) -> None:
        """Sweep once more, if the last sweep has left processes."""
        task = self._tasks.get(job)
        if task is not None and task.found is not None and task.found.processes:
            self.begin(job, task.train, task.hosts)

    def forget(self, job: str) -> None:
        """Forget what was found; a sweep under way goes on until it has ended."""
        if not self.is_under_way(job):
            self._tasks.pop(job, None)

    def _run(self, task: _Task) -> None:
        try:
            with self._turns:
                task.found = self._sweep(task.train, task.hosts)
        finally:
            task.is_under_way = False


class _HostSweep:
    def __init__(self) -> None:
        self._hosts = HostChecker()

    def __call__(self, train: Path, hosts: Iterable[str]) -> Found:
        def left() -> set[psutil.Process]:
            """The processes of the job, also a launcher whose lock is not to be found any more."""
            of_job = processes.having({"EDT_MODEL_DIR": str(train)})
            return {process for process in of_job if processes.is_alive(process)}

        processes.kill(left())
        remote = frozenset(host for host in hosts if self._hosts.is_remote(host))
        return Found(frozenset(process.pid for process in left()), remote)
