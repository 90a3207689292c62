"""What becomes of the workers and allocations of a horovodrun, seen from outside.

Horovod starts a process for every worker, here or for ssh to another host, which ends with the worker. Host
and slot are named in its command line or, where the shell has become the worker, in its environment. Between
horovodrun and that process there is one more, which also runs the discovery script.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import psutil

from edt_launch.agent.system import processes
from edt_launch.cluster.allocation import Allocation
from edt_launch.core.history import events
from edt_launch.membership.protocol import Slot

_HOST = "HOROVOD_HOSTNAME"
_SLOT = "HOROVOD_LOCAL_RANK"
_RANK = "HOROVOD_RANK"
_IN_COMMAND = re.compile(rf"\b({_HOST}|{_SLOT}|{_RANK})=([^\s'\"]+)")


@dataclass(frozen=True)
class Process:
    """What a process was started for: the slot, and the worker's first rank."""

    slot: Slot
    rank: int


@dataclass(frozen=True)
class Processes:
    """The workers below a horovodrun, by process, and the processes that have not started anything yet."""

    workers: Mapping[int, Process] = field(default_factory=dict)
    starting: frozenset[int] = frozenset()


def of_process(words: Iterable[str], environment: Mapping[str, str]) -> Process | None:
    """What a process with this command line was started for; None if it is no worker's."""
    named = dict(_IN_COMMAND.findall(" ".join(words)))
    variables = named if _HOST in named else environment
    try:
        return Process(Slot(variables[_HOST], int(variables[_SLOT])), int(variables[_RANK]))
    except (KeyError, ValueError):
        return None


def find(pid: int) -> Processes:
    """Look at the processes below a horovodrun."""
    workers: dict[int, Process] = {}
    starting: set[int] = set()
    for between in _children(pid):
        below = _children(between.pid)
        if not below and processes.is_alive(between) and not processes.is_tracker(between):
            starting.add(between.pid)
        for process in below:
            worker = of_process(processes.command_line(process), processes.environment(process))
            if worker is not None and processes.is_alive(process):
                workers[process.pid] = worker
    return Processes(workers, frozenset(starting))


def _children(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children()
    except psutil.NoSuchProcess:
        return []


@dataclass(frozen=True)
class Noted:
    """The generation that the discovery script has printed last, and when: a number that grows."""

    generation: int
    at: int


@dataclass(frozen=True)
class Observed:
    """A horovodrun so far."""

    workers: Mapping[int, tuple[int, Slot]] = field(default_factory=dict)
    """The serial numbers and slots of the workers whose processes are there, by process number."""
    started: int = 0
    """How many workers there have been."""
    devices: Mapping[Slot, str] = field(default_factory=dict)
    """What the slots have, or had when they were last allocated."""
    following: int = -1
    """Generation of the allocation that new workers are started by; -1 before the first."""
    first: Noted | None = None
    """The first time that the discovery script printed the latest generation."""
    unclear: frozenset[int] | None = None
    """Processes that may still become workers of an older one; None until it was printed twice."""

    def allocate(self, allocation: Allocation) -> "Observed":
        """Another allocation is in force."""
        named = {
            Slot(host.host, index): device
            for host in allocation.hosts
            for index, device in enumerate(host.devices or ())
        }
        return replace(self, devices={**self.devices, **named})

    def look(self, present: Processes, noted: Noted | None) -> tuple["Observed", Sequence[events.Event]]:
        """What is known after a look at the processes and the script's note, and what has happened."""
        workers, count = dict(self.workers), self.started
        changes: list[events.Event] = []
        for pid in self.workers.keys() - present.workers.keys():
            number, slot = workers.pop(pid)
            changes.append(events.Released(*self._place(number, slot)))
        for pid in sorted(present.workers.keys() - self.workers.keys()):
            process = present.workers[pid]
            workers[pid] = (count, process.slot)
            changes.append(events.Started(*self._place(count, process.slot), process.rank))
            count += 1
        after = replace(self, workers=workers, started=count)._note(noted, present.starting)
        if after.following > self.following:
            changes.append(events.Following(after.following))
        return after, changes

    def _note(self, noted: Noted | None, starting: frozenset[int]) -> "Observed":
        """Find out which generation is followed.

        Horovod's driver starts workers by what the discovery script has printed last. Once that has printed a
        generation twice, whatever an older one gave is being started; when this has become workers, or has
        ended, all workers that follow are of the new generation.
        """
        if noted is None or noted.generation <= self.following:
            return self
        if self.first is None or self.first.generation != noted.generation:
            return replace(self, first=noted, unclear=None)
        if self.unclear is None:
            return self if noted == self.first else replace(self, unclear=starting)
        unclear = self.unclear & starting
        if unclear:
            return replace(self, unclear=unclear)
        return replace(self, following=noted.generation, unclear=None)

    def _place(self, worker: int, slot: Slot) -> tuple[int, str, int, str | None]:
        return worker, slot.host, slot.index, self.devices.get(slot)
