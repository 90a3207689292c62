"""What becomes of the workers and allocations of a horovodrun, seen from outside: a pure fold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from edt_launch.cluster.allocation import Allocation
from edt_launch.core import events
from edt_launch.launcher.horovodrun.slots import Processes
from edt_launch.membership.protocol import Slot


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
