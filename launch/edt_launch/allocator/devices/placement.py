"""Which devices: survivors keep theirs, and nothing is handed over before it is free.

Shrinking empties the hosts with fewest of the job's devices first, from the tail of each list, the
coordinator's host last. Growing fills the job's own hosts, then takes the host that fits best, else the
emptiest until it fits. Devices that other jobs still hold, or that leaving workers may still use, are not
given out: a job that waits for such grows when all of them are there, so that it is resized once.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from edt_launch.allocator.model import Host, HostDevices, Job, Move, Preemption
from edt_launch.allocator.work import Work, bounds, next_usable, usable

Parts = tuple[HostDevices, ...]


class Free:
    """Free devices of hosts, `count` in all, with an index by how many a host has.

    Args:
        devices: of each host, in order; hosts are preferred in the order of the mapping.
    """

    def __init__(self, devices: Mapping[str, Sequence[str]]) -> None:
        self._devices = {host: list(names) for host, names in devices.items() if names}
        self._order = {host: position for position, host in enumerate(self._devices)}
        # Heaps; hosts that have changed are dropped late.
        self._by_count: dict[int, list[tuple[int, str]]] = {}
        for host, names in self._devices.items():
            self._by_count.setdefault(len(names), []).append((self._order[host], host))
        for hosts in self._by_count.values():
            heapify(hosts)
        self.count = sum(len(names) for names in self._devices.values())

    @property
    def hosts(self) -> Iterable[str]:
        """Those on which something was free, in order."""
        return self._devices

    def __getitem__(self, host: str) -> Sequence[str]:
        """What is free on a host."""
        return self._devices.get(host, ())

    def take(self, host: str, count: int) -> list[str]:
        """Up to `count` of a host's devices, its first ones, which are not free any more."""
        names = self._devices[host]
        taken, left = names[:count], names[count:]
        self._devices[host] = left
        self.count -= len(taken)
        if left:
            heappush(self._by_count.setdefault(len(left), []), (self._order[host], host))
        return taken

    def best(self, count: int, own: Iterable[str]) -> str:
        """The host that `count` devices fit on most closely, else the emptiest; the first of equals.

        Args:
            count: devices wanted.
            own: hosts that are preferred to all others, if something is free there.

        Raises:
            ValueError: nothing is free.
        """
        preferred = [host for host in own if self._devices.get(host)]
        if preferred:
            fitting = [host for host in preferred if len(self._devices[host]) >= count]
            if fitting:
                return min(fitting, key=lambda host: len(self._devices[host]))
            return max(preferred, key=lambda host: len(self._devices[host]))
        known = sorted(self._by_count)
        for number in [*(n for n in known if n >= count), *(n for n in reversed(known) if n < count)]:
            hosts = self._by_count[number]
            while hosts and len(self._devices[hosts[0][1]]) != number:
                heappop(hosts)
            if hosts:
                return hosts[0][1]
            del self._by_count[number]
        raise ValueError("no device is free")


@dataclass(slots=True, eq=False)
class Site:
    """Where devices are free, whether jobs are giving up more, and on which hosts."""

    free: Free
    is_more_coming: bool
    coming: Container[str] = ()


def place(work: Work, sizes: Sequence[int]) -> dict[str, Parts]:
    """What each job's allocation file is to say now, by its id, where sizes or hosts have changed."""
    hosts = [] if work.is_whole else [host for host in work.cluster.hosts if host.is_up]
    up, draining = {host.name for host in hosts}, {host.name for host in hosts if host.is_draining}
    held, jobs = work.held, work.jobs
    assigned: dict[str, Parts] = {}
    growing: list[int] = []
    moving: list[int] = []
    for index, job in enumerate(jobs):
        parts, size = job.held, sizes[index]
        if not work.is_whole:
            parts = tuple(part for part in parts if part.host in up)
        if size < held[index]:
            parts = shrunk(parts, held[index] - size, draining)
        elif size > held[index]:
            growing.append(index)
        assigned[job.id] = parts
        if draining and not job.is_fixed and any(part.host in draining for part in parts):
            moving.append(index)
    if growing or moving:
        site = survey(work.cluster.hosts, jobs, assigned)
        for index in sorted(growing, key=lambda index: _growth_order(work, index, sizes[index])):
            job = jobs[index]
            move = work.cluster.memory.moves.get(job.id)
            joined = None if move is None else _join(assigned[job.id], sizes[index], move, site)
            assigned[job.id] = joined or _grow(job, assigned[job.id], sizes[index], site)
        for index in sorted(moving, key=lambda index: jobs[index].id):
            assigned[jobs[index].id] = _leave(jobs[index], assigned[jobs[index].id], draining, site)
    return assigned


def shrunk(parts: Parts, count: int, draining: set[str]) -> Parts:
    """The parts without `count` of their devices."""
    left = [list(part.devices) for part in parts]
    order = sorted(
        range(len(parts)),
        key=lambda at: (parts[at].host not in draining, at == 0, len(left[at]), -at),
    )
    for at in order:
        if count <= 0 or not left:
            break
        cut = min(count, len(left[at]))
        del left[at][len(left[at]) - cut :]
        count -= cut
    return tuple(
        HostDevices(part.host, tuple(devices)) for part, devices in zip(parts, left, strict=True) if devices
    )


def grown(parts: Parts, count: int, free: Free) -> Parts:
    """The parts with `count` of the free devices, which are taken; there must be as many."""
    left = {part.host: list(part.devices) for part in parts}
    while count > 0:
        host = free.best(count, left)
        taken = free.take(host, count)
        left.setdefault(host, []).extend(taken)
        count -= len(taken)
    return tuple(HostDevices(host, tuple(devices)) for host, devices in left.items())


def survey(hosts: Sequence[Host], jobs: Sequence[Job], assigned: Mapping[str, Parts]) -> Site:
    """What nobody holds, keeps or may still use of hosts that are up and not draining."""
    used: dict[str, tuple[str, ...]] = {
        host.name: () for host in hosts if host.is_up and not host.is_draining
    }
    is_more_coming, coming = False, set[str]()
    for job in jobs:
        parts, held, leaving = assigned[job.id], job.held, job.leaving
        for part in (*held, *leaving) if leaving else held:
            if part.host in used:
                used[part.host] += part.devices
        if leaving or parts is not held:
            is_more_coming = is_more_coming or _gives_up(job, parts, used)
            kept = {part.host: len(part.devices) for part in parts}
            coming.update(part.host for part in held if len(part.devices) > kept.get(part.host, 0))
            coming.update(part.host for part in leaving)
    free: dict[str, list[str]] = {}
    for host in hosts:
        if used.get(host.name, host.devices) != host.devices:
            left = {*host.devices}.difference(used[host.name])
            free[host.name] = [name for name in host.devices if name in left]
    return Site(Free(free), is_more_coming, coming)


def _gives_up(job: Job, parts: Parts, hosts: Container[str]) -> bool:
    """Whether a job uses more of the hosts now than it is to keep."""
    now = sum(len(part.devices) for part in (*job.held, *job.leaving) if part.host in hosts)
    return now > sum(len(part.devices) for part in parts if part.host in hosts)


def _growth_order(work: Work, index: int, size: int) -> tuple[object, ...]:
    """Who gets free devices first: what is below its minimum, higher tiers, bigger pieces."""
    job, held = work.jobs[index], work.held[index]
    is_moving = job.id in work.cluster.memory.moves
    return not is_moving, held >= work.low[index], -job.tier, held - size, job.submitted, job.id


def _grow(job: Job, parts: Parts, size: int, site: Site) -> Parts:
    held = sum(len(part.devices) for part in parts)
    count = site.free.count
    if size - held > count:
        reach = 0 if site.is_more_coming else usable(job, held + count)
        if reach <= held:
            return parts if held else ()
        size = reach
    return grown(parts, size - held, site.free)


def _join(parts: Parts, size: int, move: Move, site: Site) -> Parts | None:
    """The parts of a job that moves onto hosts, as it is until there is room; None if none is coming."""
    missing = size - sum(len(part.devices) for part in parts)
    if sum(len(site.free[host]) for host in move.hosts) < missing:
        return parts if any(host in site.coming for host in move.hosts) else None
    left = {part.host: part.devices for part in parts}
    for host in move.hosts:
        taken = site.free.take(host, missing) if missing and site.free[host] else []
        left[host] = (*left.get(host, ()), *taken)
        missing -= len(taken)
    return tuple(HostDevices(host, devices) for host, devices in left.items() if devices)


def _leave(job: Job, parts: Parts, draining: set[str], site: Site) -> Parts:
    """Replace devices of draining hosts by free ones, as far as there are any; somebody always stays."""
    staying = tuple(part for part in parts if part.host not in draining)
    size = sum(len(part.devices) for part in parts)
    count = size - sum(len(part.devices) for part in staying)
    living = {part.host for part in job.held}
    survives = any(part.host in living for part in staying)
    swapped = min(site.free.count, count if survives else count - 1)
    if swapped > 0:
        return grown(shrunk(parts, swapped, draining), swapped, site.free)
    if survives or size > 1 or not site.free.count:
        return parts
    bigger = next_usable(job, size)
    if bigger is not None and bigger - size <= site.free.count:
        return grown(parts, bigger - size, site.free)
    is_nonpreemptible = job.preemption is not Preemption.TO_ZERO
    return () if bounds(job)[0] <= site.free.count and not is_nonpreemptible else parts
