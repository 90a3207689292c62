"""The sources of hosts that there are: `edt-launch` and `edt serve` choose from this table."""

from edt_launch.cluster.discovery_script import Script
from edt_launch.cluster.host_file import HostFile, HostList
from edt_launch.cluster.hosts import HostOptions, HostSource
from edt_launch.cluster.local import Cores, Slots
from edt_launch.cluster.nvidia import Nvidia
from edt_launch.cluster.ray.source import Ray
from edt_launch.cluster.slurm import Slurm
from edt_launch.cluster.slurm_pilots import SlurmPilots
from edt_launch.core.command_line import NoOptions

THIS_MACHINE: tuple[type[HostSource], ...] = (Nvidia, Cores)

SOURCES: tuple[type[HostSource], ...] = (
    *(Ray, Slots, HostList, HostFile, Script),
    *(SlurmPilots, Slurm),
    *THIS_MACHINE,
)
"""The first one that is there counts: what the options say, then a cluster's manager, then this machine."""


def choose(options: HostOptions, kinds: tuple[type[HostSource], ...] | None = None) -> HostSource:
    """The first source that is there, of all or of those given.

    Raises:
        SourceError: it is there and cannot be used.
    """
    found = (kind.detect(options) for kind in kinds or SOURCES)
    return next(source for source in found if source is not None)


def groups() -> tuple[type, ...]:
    """The options that sources have declared, a dataclass for each that has some."""
    return tuple(dict.fromkeys(kind.options for kind in SOURCES if kind.options is not NoOptions))


def transport_of(name: str) -> str:
    """How the hosts of a source of this name are reached that are not this machine; empty for ssh."""
    return next((kind.transport for kind in SOURCES if kind.name == name), "")
