"""Hosts, shares and changes of allocations: one frozen dataclass a table, its fields the table's columns."""

import hashlib
from dataclasses import dataclass
from math import inf
from typing import Any

from edt_launch.service.db.types import Devices, Held, Limit, Str16, Str32, Str64, Str255


@dataclass(frozen=True)
class ShareRecord:
    """A node of the owners' tree; the fields are those of `allocator.model.Owner`. The root's name is "".

    `budget` and `used` are in hours of devices, and the latter is what all jobs below it have had so far.
    """

    name: Str64
    parent: Str64 | None = ""
    weight: float = 1.0
    guarantee: float = 0.0
    limit: Limit = inf
    lends: bool = True
    policy: Str16 = "fair"
    half_life: float = 86400.0
    service: float = 0.0
    entitlement: float = 0.0
    usage_at: float = 0.0
    budget: Limit = inf
    used: float = 0.0

    @property
    def settings(self) -> dict[str, Any]:
        """What people say of it, without what is remembered of its use."""
        return {name: getattr(self, name) for name in SETTINGS}

    @property
    def version(self) -> str:
        """Tells its settings from others."""
        return hashlib.sha256(repr(self.settings).encode()).hexdigest()[:16]


SETTINGS = ("parent", "weight", "guarantee", "limit", "lends", "policy", "half_life", "budget")
"""What people say of a node of the owners' tree."""


@dataclass(frozen=True)
class HostRecord:
    """A machine.

    Attributes:
        is_up: whether its source lists it, and it can be reached.
        source: who knows of it.
        reason: why it is draining; it stays when the host is down.
        changed: when its state or its devices have changed last, unix seconds.
        lost: why it cannot be reached, though its source lists it; else empty.
    """

    name: Str255
    devices: Devices
    is_up: bool = True
    is_draining: bool = False
    source: Str32 = ""
    reason: str = ""
    changed: float = 0.0
    lost: str = ""

    @property
    def state(self) -> str:
        """`up`, `down` or `draining`."""
        if not self.is_up:
            return "down"
        return "draining" if self.is_draining else "up"

    @property
    def why(self) -> str:
        """Why it is in its state; empty if it is up."""
        down = self.lost or "its source does not list it any more"
        return {"down": down, "draining": self.reason}.get(self.state, "")


@dataclass(frozen=True)
class AllocationRecord:
    """A job was given another number of workers, or other devices, or its workers have left some.

    Attributes:
        devices: what it has been given.
        leaving: what its workers were told to leave, and were not known to have left.
        lost: workers that have failed.
    """

    job: Str16
    owner: Str64
    time: float
    before: int
    after: int
    devices: Held
    reason: str
    number: int = 0
    leaving: Held = ()
    lost: int = 0
