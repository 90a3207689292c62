"""Which devices a job holds: its allocation file, and what its workers are known to have left.

The file says what the job may use, and, in comments that only this module reads, what earlier generations
of it gave the job and may still be in use::

    # edt allocation v1 generation=17
    # leaving node2:1 devices=5
    node1:2 devices=0,3

A device has been left when the launcher is known to start workers by this generation or a later one, and no
worker of the job is there any more. So file and events alone say, after any crash, which devices are free.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from edt_launch.allocator.model import HostDevices
from edt_launch.cluster.allocation import Allocation, HostSlots, parse, render
from edt_launch.cluster.hosts import ways
from edt_launch.service.jobs.loop.progress import Device, LauncherRun

Held = tuple[HostDevices, ...]

_LEAVING = re.compile(r"# leaving (?P<host>[^\s:]+):\d+ devices=(?P<devices>\S+)")


@dataclass(frozen=True)
class DeviceGrant:
    """The content of a job's allocation file.

    Attributes:
        generation: 0 if there has been no file.
        held: what it gives the job, the coordinator's host first.
        leaving: what earlier generations gave the job, and was not known to be left when it was written.
        at_once: whether workers are ended, not waited for, on devices that it gives the job no more.
    """

    generation: int = 0
    held: Held = ()
    leaving: Held = ()
    at_once: bool = False

    @property
    def size(self) -> int:
        """Workers that it gives the job."""
        return size_of(self.held)


def read(text: str) -> DeviceGrant:
    """The content of a file.

    Raises:
        AllocationError: it makes no sense.
    """
    allocation = parse(text)
    held = tuple(HostDevices(host.host, host.devices or ()) for host in allocation.hosts if host.slots)
    marks = (_LEAVING.fullmatch(line) for line in text.splitlines())
    leaving = (HostDevices(mark["host"], tuple(mark["devices"].split(","))) for mark in marks if mark)
    return DeviceGrant(allocation.generation, held, tuple(leaving), allocation.at_once)


def write(grant: DeviceGrant, listed: Mapping[str, HostSlots] = MappingProxyType({})) -> str:
    """The text of a file; `read` gives the grant back.

    `listed` are hosts as their source shows them, by name: with the transports and agents that they name.

    Raises:
        AllocationError: it could not be read back: it gives nothing, or names have odd characters.
    """
    hosts = tuple(
        replace(listed.get(at.host, HostSlots(at.host, 0)), slots=len(at.devices), devices=at.devices)
        for at in grant.held
    )
    first, rest = render(Allocation(grant.generation, hosts, grant.at_once)).split("\n", 1)
    left = [f"# leaving {at.host}:{len(at.devices)} devices={','.join(at.devices)}" for at in grant.leaving]
    return "\n".join([first, *left, rest])


def is_outdated(text: str, listed: Mapping[str, HostSlots]) -> bool:
    """Whether hosts of a file are reached in another way by now, as their source shows them.

    Raises:
        AllocationError: the file makes no sense.
    """
    now = ways(listed)
    written = ways({host.host: host for host in parse(text).hosts})
    return any(now.get(name, way) != way for name, way in written.items())


def devices_of(held: Iterable[HostDevices]) -> frozenset[Device]:
    """The same as single devices."""
    return frozenset((host.host, device) for host in held for device in host.devices)


def as_held(devices: Iterable[Device]) -> Held:
    """Single devices by their hosts, in a fixed order."""
    by_host: dict[str, list[str]] = {}
    for host, device in sorted(devices):
        by_host.setdefault(host, []).append(device)
    return tuple(HostDevices(host, tuple(names)) for host, names in by_host.items())


def size_of(held: Iterable[HostDevices]) -> int:
    """How many devices these are."""
    return sum(len(host.devices) for host in held)


def leaving(grant: DeviceGrant, run: LauncherRun | None) -> Held:
    """Devices that a live launcher's workers may still use though the file does not give them any more."""
    used = run.devices if run is not None else frozenset()
    if run is None or run.following < grant.generation:
        used = used | devices_of(grant.leaving)
    return as_held(used - devices_of(grant.held))


def unaccounted(
    grant: DeviceGrant, run: LauncherRun | None, identity: tuple[int, float] | None
) -> frozenset[Device]:
    """Devices whose workers are not known to be gone, though the launcher is.

    Args:
        grant: what the job's file says.
        run: what its events say of the launcher started last.
        identity: of the launcher that is gone; None if it has not said who it is.
    """
    used = run.devices if run is not None else frozenset()
    if run is not None and run.exit_code is not None and identity == (run.pid, run.started):
        return used
    return used | devices_of((*grant.held, *grant.leaving))


def in_use(grant: DeviceGrant, run: LauncherRun | None) -> Held:
    """All devices that a live launcher's workers may use."""
    return as_held(devices_of((*grant.held, *leaving(grant, run))))
