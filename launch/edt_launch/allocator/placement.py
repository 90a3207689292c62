"""Which devices: survivors keep theirs, and nothing is handed over before it is free.

Shrinking empties the hosts with fewest of the job's devices first, from the tail of each list, the
coordinator's host last. Growing fills the job's own hosts, then takes the host that fits best, else the
emptiest until it fits. Devices that other jobs still hold, or that leaving workers may still use, are not
given out: a job that waits for such grows when all of them are there, so that it is resized once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from edt_launch.allocator.model import Cluster, Host, HostDevices, Job
from edt_launch.allocator.work import Work, bounds, next_usable, usable

Parts = tuple[HostDevices, ...]


@dataclass(slots=True, eq=False)
class _Site:
    """What is free, and whether more is about to be."""

    free: dict[str, list[str]]
    is_more_coming: bool

    @property
    def count(self) -> int:
        return sum(len(devices) for devices in self.free.values())


def place(work: Work, sizes: Sequence[int]) -> dict[str, Parts]:
    """What each job's allocation file is to say now, by its id."""
    hosts = {host.name: host for host in work.cluster.hosts if host.is_up}
    draining = {name for name, host in hosts.items() if host.is_draining}
    is_whole = len(hosts) == len(work.cluster.hosts) and not draining
    held, jobs = work.held, work.jobs
    if is_whole and held == sizes:
        return {job.id: job.held for job in jobs}
    assigned: dict[str, Parts] = {}
    growing: list[int] = []
    moving: list[int] = []
    for index, job in enumerate(jobs):
        parts, size = job.held, sizes[index]
        parts = tuple(part for part in parts if part.host in hosts)
        if size < held[index]:
            parts = shrunk(parts, held[index] - size, draining)
        elif size > held[index]:
            growing.append(index)
        assigned[job.id] = parts
        if draining and any(part.host in draining for part in parts):
            moving.append(index)
    if growing or moving:
        site = _survey(work.cluster, jobs, assigned)
        for index in sorted(growing, key=lambda index: _turn(work, index, sizes[index])):
            assigned[jobs[index].id] = _grow(jobs[index], assigned[jobs[index].id], sizes[index], site)
        for index in sorted(moving, key=lambda index: jobs[index].id):
            assigned[jobs[index].id] = _move(jobs[index], assigned[jobs[index].id], draining, site)
    return assigned


def shrunk(parts: Parts, count: int, draining: set[str]) -> Parts:
    """The parts without `count` of their devices."""
    left = [list(part.devices) for part in parts]
    order = sorted(
        range(len(parts)),
        key=lambda place: (parts[place].host not in draining, place == 0, len(left[place]), -place),
    )
    for place in order:
        if count <= 0 or not left:
            break
        cut = min(count, len(left[place]))
        del left[place][len(left[place]) - cut :]
        count -= cut
    return _joined(parts, left)


def grown(parts: Parts, count: int, free: dict[str, list[str]]) -> Parts:
    """The parts with `count` of the free devices, which are taken; there must be as many."""
    left = {part.host: list(part.devices) for part in parts}
    while count > 0:
        own = [host for host in left if free.get(host)]
        host = _best(own or [host for host, devices in free.items() if devices], count, free)
        taken = free[host][:count]
        del free[host][:count]
        left.setdefault(host, []).extend(taken)
        count -= len(taken)
    return tuple(HostDevices(host, tuple(devices)) for host, devices in left.items())


def _best(hosts: Sequence[str], count: int, free: Mapping[str, list[str]]) -> str:
    """The host that the rest fits on most closely, else the emptiest; the first of equals."""
    fitting = [host for host in hosts if len(free[host]) >= count]
    if fitting:
        return min(fitting, key=lambda host: len(free[host]))
    return max(hosts, key=lambda host: len(free[host]))


def _joined(parts: Parts, left: Sequence[Sequence[str]]) -> Parts:
    return tuple(
        part if len(devices) == len(part.devices) else HostDevices(part.host, tuple(devices))
        for part, devices in zip(parts, left, strict=True)
        if devices
    )


def _survey(cluster: Cluster, jobs: Sequence[Job], assigned: Mapping[str, Parts]) -> _Site:
    """What nobody holds, keeps or may still use."""
    busy: dict[str, set[str]] = {}
    is_more_coming = False
    open_hosts = [host for host in cluster.hosts if host.is_up and not host.is_draining]
    names = {host.name for host in open_hosts}
    for job in jobs:
        kept = 0
        for part in assigned[job.id]:
            kept += len(part.devices) if part.host in names else 0
        for part in job.held:
            busy.setdefault(part.host, set()).update(part.devices)
            kept -= len(part.devices) if part.host in names else 0
        for part in job.leaving:
            busy.setdefault(part.host, set()).update(part.devices)
            kept -= len(part.devices) if part.host in names else 0
        is_more_coming = is_more_coming or kept < 0
    return _Site({host.name: _free(host, busy) for host in open_hosts}, is_more_coming)


def _free(host: Host, busy: Mapping[str, set[str]]) -> list[str]:
    taken = busy.get(host.name)
    return [device for device in host.devices if device not in taken] if taken else list(host.devices)


def _turn(work: Work, index: int, size: int) -> tuple[object, ...]:
    """Who gets free devices first: what is below its minimum, higher tiers, bigger pieces."""
    job, held = work.jobs[index], work.held[index]
    return held >= work.low[index], -job.tier, held - size, job.submitted, job.id


def _grow(job: Job, parts: Parts, size: int, site: _Site) -> Parts:
    held = sum(len(part.devices) for part in parts)
    count = site.count
    if size - held > count:
        reach = 0 if site.is_more_coming else usable(job, held + count)
        if reach <= held:
            return parts if held else ()
        size = reach
    return grown(parts, size - held, site.free)


def _move(job: Job, parts: Parts, draining: set[str], site: _Site) -> Parts:
    """Replace devices of draining hosts by free ones, as far as there are any; somebody always stays."""
    staying = tuple(part for part in parts if part.host not in draining)
    size = sum(len(part.devices) for part in parts)
    count = size - sum(len(part.devices) for part in staying)
    living = {part.host for part in job.held}
    survives = any(part.host in living for part in staying)
    swapped = min(site.count, count if survives else count - 1)
    if swapped > 0:
        return grown(shrunk(parts, swapped, draining), swapped, site.free)
    if survives or size > 1 or not site.count:
        return parts
    bigger = next_usable(job, size)
    if bigger is not None and bigger - size <= site.count:
        return grown(parts, bigger - size, site.free)
    return () if bounds(job)[0] <= site.count else parts
