"""A source of hosts that says what a test wants it to."""

from collections.abc import Sequence
from typing import ClassVar

from edt_launch.cluster.allocation import HostSlots
from edt_launch.cluster.hosts import HostOptions, HostSource
from edt_launch.core.errors import SourceError


class SimulatedHosts(HostSource):
    """Hosts that come, go and cannot be found out, as a test says."""

    name: ClassVar[str] = "simulated"
    may_change: ClassVar[bool] = True

    def __init__(self, *found: HostSlots) -> None:
        self.found = found
        self.trouble = ""
        self.failure: Exception | None = None
        self.told: list[tuple[object, ...]] = []

    def __str__(self) -> str:
        return "the simulated cluster"

    @classmethod
    def detect(cls, options: HostOptions) -> "SimulatedHosts":
        return cls()

    def hosts(self) -> tuple[HostSlots, ...]:
        if self.failure is not None:
            raise self.failure
        if self.trouble:
            raise SourceError(self.trouble)
        return self.found

    def reserve(self, host: str, devices: Sequence[str]) -> None:
        self.told.append(("reserve", host, *devices))

    def release(self, host: str, devices: Sequence[str]) -> None:
        self.told.append(("release", host, *devices))

    def demand(self, slots: int) -> None:
        self.told.append(("demand", slots))

    def close(self) -> None:
        self.told.append(("close",))
