"""The events about the slots that a job has, and can use."""

from dataclasses import dataclass

from edt_launch.core.history.event import Event
from edt_messages.records import Number, Seconds, Serial


@dataclass(frozen=True)
class AllocatedHost:
    """The slots of a host, and a device for each; None where no devices are bound."""

    host: str
    slots: Number
    devices: tuple[str, ...] | None = None


@dataclass(frozen=True)
class AllocationAccepted(Event):
    """Another allocation is in force.

    Attributes:
        hosts: `host`, `slots` and `devices` of each.
        first: whether it is the first one of this `edt-launch`.
        changed: when the file changed, unix seconds; null if unknown.
    """

    generation: Serial
    slots: Number
    hosts: tuple[AllocatedHost, ...] = ()
    first: bool = False
    changed: Seconds | None = None


@dataclass(frozen=True)
class AllocationRejected(Event):
    """What the allocation file says cannot be used; the allocation before stays in force."""

    reason: str


@dataclass(frozen=True)
class Usable(Event):
    """The program has said how many workers it can use at most."""

    max_workers: Number


@dataclass(frozen=True)
class Desired(Event):
    """The driver knows of other slots."""

    slots: Number


@dataclass(frozen=True)
class Following(Event):
    """The driver knows the allocation of this generation. It starts workers in no other slots."""

    generation: Serial
