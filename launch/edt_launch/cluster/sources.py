"""The kinds of clusters: each a small class that says whether it is there, and which hosts it has."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol, Self

from edt_launch.cluster.static_hosts import LOCAL
from edt_launch.service.settings import Settings


class DevicesError(Exception):
    """The devices cannot be found out, for instance because a host file makes no sense."""


@dataclass(frozen=True)
class HostDevices:
    """A machine and the names of its devices, in order."""

    name: str
    devices: tuple[str, ...]


@dataclass(frozen=True)
class Surroundings:
    """What sources are detected from.

    Attributes:
        settings: the service's.
        environment: environment variables.
    """

    settings: Settings
    environment: Mapping[str, str]


class Source(Protocol):
    """Knows the hosts and their devices."""

    name: ClassVar[str]

    @classmethod
    def detect(cls, around: Surroundings) -> Self | None:
        """The source, if it is there.

        Raises:
            DevicesError: it is there and cannot be used.
        """

    def hosts(self) -> tuple[HostDevices, ...]:
        """The hosts there are now; called about once a second.

        Raises:
            DevicesError: nobody knows; what was known before goes on to count.
        """


def slots(count: int) -> tuple[str, ...]:
    """Names of slots that are no devices: no GPU has such a name, so none is visible to the worker."""
    return tuple(f"cpu{index}" for index in range(count))


@dataclass(frozen=True)
class Slots:
    """So many slots on this machine as the settings say."""

    name: ClassVar[str] = "slots"
    count: int

    @classmethod
    def detect(cls, around: Surroundings) -> Self | None:
        """If the settings give a number."""
        return None if around.settings.slots is None else cls(around.settings.slots)

    def hosts(self) -> tuple[HostDevices, ...]:
        """This machine."""
        return (HostDevices(LOCAL, slots(self.count)),)


@dataclass(frozen=True)
class Cores:
    """A machine that has nothing else: a slot for each processor core."""

    name: ClassVar[str] = "cores"
    count: int

    @classmethod
    def detect(cls, around: Surroundings) -> Self:
        """Always."""
        return cls(len(os.sched_getaffinity(0)))

    def hosts(self) -> tuple[HostDevices, ...]:
        """This machine."""
        return (HostDevices(LOCAL, slots(self.count)),)


def choose(around: Surroundings) -> Source:
    """The first source that is there: what the settings say, then Slurm, then this machine.

    Raises:
        DevicesError: one is there and cannot be used.
    """
    from edt_launch.cluster.host_file import HostFile
    from edt_launch.cluster.nvidia import Nvidia
    from edt_launch.cluster.slurm import Slurm

    kinds: tuple[type[Source], ...] = (Slots, HostFile, Slurm, Nvidia)
    for kind in kinds:
        source = kind.detect(around)
        if source is not None:
            return source
    return Cores.detect(around)
