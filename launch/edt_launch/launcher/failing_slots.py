"""The slots of a job whose workers fail before they train: a pure fold over its events."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from edt_launch.core.history import events

SHOWN_SLOTS = 4
"""Slots that a message names."""

Key = tuple[str, int]
"""A host, and the number of a slot there."""


@dataclass(frozen=True)
class FailingSlots:
    """The slots in which workers have failed since one trained there, and none has trained.

    Attributes:
        counts: how many, by slot.
        last: the last of these failures; None if there was none.
        slots: where the workers are that have not trained yet, by their serial numbers.
        world: the workers of the present world. They train once it has reported a step,
            and a program that reports none has done its work where a worker has left.
    """

    counts: Mapping[Key, int] = field(default_factory=dict)
    last: events.Failed | None = None
    slots: Mapping[int, Key] = field(default_factory=dict)
    world: tuple[int, ...] = ()

    def observe(self, event: events.Event) -> "FailingSlots":
        """The slots after one more event."""
        match event:
            case events.Started(worker, host, slot):
                return replace(self, slots={**self.slots, worker: (host, slot)})
            case events.Failed(worker, host, slot) if worker in self.slots:
                counts = {**self.counts, (host, slot): self.counts.get((host, slot), 0) + 1}
                return replace(self._without(worker), counts=counts, last=event)
            case events.Left(worker):
                filled = {self.slots[worker]} if worker in self.world and worker in self.slots else set()
                return replace(self._without(worker), counts=_outside(self.counts, filled))
            case events.World(ranks=ranks):
                return replace(self, world=tuple(ranks))
            case events.Progress(size=size) if size == len(self.world):
                filled = {self.slots[worker] for worker in self.world if worker in self.slots}
                return replace(self._without(*self.world), counts=_outside(self.counts, filled))
            case events.AllocationAccepted(hosts=hosts):
                allocated = {(host.host, slot) for host in hosts for slot in range(host.slots)}
                return replace(self, counts=_outside(self.counts, self.counts.keys() - allocated))
        return self

    def _without(self, *workers: int) -> "FailingSlots":
        return replace(self, slots={w: key for w, key in self.slots.items() if w not in workers})

    @property
    def text(self) -> str:
        """Which slots they are; empty if there are none."""
        found = [
            f"slot {slot} of {host} ({count} {'time' if count == 1 else 'times'})"
            for (host, slot), count in sorted(self.counts.items())
        ]
        more = f" and {len(found) - SHOWN_SLOTS} more" if len(found) > SHOWN_SLOTS else ""
        return ", ".join(found[:SHOWN_SLOTS]) + more


def _outside(counts: Mapping[Key, int], keys: set[Key]) -> dict[Key, int]:
    return {key: count for key, count in counts.items() if key not in keys}
