"""What becomes of the workers and allocations of a horovodrun, seen from outside: a pure fold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from edt_launch.cluster.allocation import Allocation
from edt_launch.core import events
from edt_launch.launcher.horovodrun.slots import Processes, Slot


@dataclass(frozen=True)
class Noted:
    """What the discovery script has written down.

    Attributes:
        generation: of the allocation that it printed last.
        at: when, as a number that grows from one time to the next.
    """

    generation: int
    at: int


@dataclass(frozen=True)
class Observed:
    """A horovodrun so far.

    Attributes:
        workers: those whose processes are there: their serial numbers and slots, by process number.
        started: how many workers there have been.
        devices: what the slots have, or had when they were last allocated.
        following: generation of the allocation that new workers are started by; -1 before the first.
        first: the first time that the discovery script printed the latest generation.
        unclear: processes that may still become workers of an older generation; None until the script has
            printed the latest one twice.
    """

    workers: Mapping[int, tuple[int, Slot]] = field(default_factory=dict)
    started: int = 0
    devices: Mapping[Slot, str] = field(default_factory=dict)
    following: int = -1
    first: Noted | None = None
    unclear: frozenset[int] | None = None

    def allocate(self, allocation: Allocation) -> "Observed":
        """Another allocation is in force."""
        named = {
            Slot(host.host, index): device
            for host in allocation.hosts
            for index, device in enumerate(host.devices or ())
        }
        return replace(self, devices={**self.devices, **named})

    def look(self, found: Processes, noted: Noted | None) -> tuple["Observed", Sequence[events.Event]]:
        """Compare with what there is now.

        Args:
            found: the processes.
            noted: what the discovery script has written down; None before it has.

        Returns:
            What is known after that, and the events that have happened.
        """
        workers, count = dict(self.workers), self.started
        changes: list[events.Event] = []
        for pid in self.workers.keys() - found.workers.keys():
            number, slot = workers.pop(pid)
            changes.append(events.Released(*self._place(number, slot)))
        for pid in sorted(found.workers.keys() - self.workers.keys()):
            process = found.workers[pid]
            workers[pid] = (count, process.slot)
            changes.append(events.Started(*self._place(count, process.slot), process.rank))
            count += 1
        after = replace(self, workers=workers, started=count)._note(noted, found.starting)
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
