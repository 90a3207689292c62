"""Moving jobs onto fewer hosts.

Workers of one host reach each other faster than through the network. So a job that could lie on fewer hosts
is taken to get faster by `GAIN` there, and its devices to stay what they are for as long again as they have
been so. The move is made as soon as it brings more than it costs, once nothing else has changed for a while.
It goes onto hosts that have room, one of the job's own among them, as somebody has to stay. A job that fits
on one of its own, which has no room, exchanges devices with another, which then has as many where the first
one had them, and lies on no more hosts than before.

An exchange is two resizes of both: first they give devices up, then they get those of the other. So both have
to be able to run with fewer workers.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest

from edt_launch.allocator.devices.placement import Free, Parts, grown, shrunk, survey
from edt_launch.allocator.model import HostDevices, Job, Move
from edt_launch.allocator.work import Work, usable

GAIN = 0.1
"""By how much of its speed a job is taken to get faster on fewer hosts."""


@dataclass(slots=True, eq=False)
class Packed:
    """Moves.

    Attributes:
        parts: what the allocation files of jobs that move are to say now, by their ids.
        moves: of each job that is to lie on fewer hosts, by its id.
        hosts: on which a job that moves was, or will be; others exchange nothing there before that is done.
        again_at: times at which a move becomes worth it.
    """

    parts: dict[str, Parts] = field(default_factory=dict)
    moves: dict[str, Move] = field(default_factory=dict)
    hosts: set[str] = field(default_factory=set)
    again_at: list[float] = field(default_factory=list)


def is_quiet(work: Work, sizes: Sequence[int]) -> bool:
    """Whether no job is to have another size, is being resized, or is on a host that is down or draining."""
    if work.held != sizes or any(job.leaving for job in work.jobs):
        return False
    usable = {host.name for host in work.cluster.hosts if host.is_up and not host.is_draining}
    return work.is_whole or all(
        part.host in usable for job in work.jobs if not job.is_fixed for part in job.held
    )


def pack(work: Work) -> Packed:
    """Moves that are worth it now, in a cluster in which nothing else is to change."""
    packed = Packed()
    room = {host.name: len(host.devices) for host in work.cluster.hosts}
    largest = max(room.values(), default=1)
    moving = [
        job
        for job, size in zip(work.jobs, work.held, strict=True)
        if len(job.held) > 1
        and not job.is_fixed
        and len(job.held) > -(-size // largest)
        and _is_worth(work, packed, job.resize_cost, job)
    ]
    if not moving:
        return packed
    free = survey(work.cluster.hosts, work.jobs, {job.id: job.held for job in work.jobs}).free
    most = max([len(job.held) for job in moving])
    roomy = nlargest(most, free.hosts, key=lambda host: len(free[host]))
    neighbours = _by_host(work.jobs, {part.host for job in moving for part in job.held})
    for job in sorted(moving, key=lambda job: (_since(job), job.id)):
        if job.id in packed.parts or _move(job, free, roomy, packed):
            continue
        onto = [part for part in job.held if room[part.host] >= job.size]
        _exchange(work, job, sorted(onto, key=lambda part: -len(part.devices)), neighbours, packed)
    return packed


def _since(job: Job) -> float:
    """Since when a job has the devices that it has."""
    return max(job.started or 0.0, job.resized or 0.0)


def _is_worth(work: Work, packed: Packed, cost: float, *jobs: Job) -> bool:
    """Whether the devices of the jobs have been theirs for so long that a move brings what it costs."""
    pause, busy_at = work.cluster.options.resize_interval, work.cluster.memory.busy_at
    worth_at = max(map(_since, jobs)) + max(pause, cost / GAIN)
    if busy_at is not None:
        worth_at = max(worth_at, busy_at + pause)
    if worth_at > work.now:
        packed.again_at.append(worth_at)
    return worth_at <= work.now


def _move(job: Job, free: Free, roomy: Sequence[str], packed: Packed) -> bool:
    """Move a job onto fewer hosts that have room, its own and `roomy` ones; whether there are such."""
    own = {part.host: part.devices for part in job.held}
    room = [len(own.get(host, ())) + len(free[host]) for host in {*own, *roomy}]
    if sum(nlargest(len(own) - 1, room)) < job.size:
        return False
    chosen, missing = list[str](), job.size
    while missing > 0 and len(chosen) < len(own) - 1:
        chosen.append(_next_host(own, free, roomy, chosen, missing))
        missing -= len(own.get(chosen[-1], ())) + len(free[chosen[-1]])
    if missing > 0:
        return False
    parts = {host: devices for host, devices in own.items() if host in chosen}
    missing = job.size - sum(map(len, parts.values()))
    for host in [*parts, *(host for host in chosen if host not in own)]:
        if taken := free.take(host, missing) if missing and free[host] else []:
            parts[host] = (*parts.get(host, ()), *taken)
            missing -= len(taken)
    packed.parts[job.id] = tuple(HostDevices(host, devices) for host, devices in parts.items())
    packed.moves[job.id] = Move(tuple(parts), job.resize_cost)
    packed.hosts.update(own, parts)
    return True


def _next_host(
    own: Mapping[str, Sequence[str]], free: Free, roomy: Sequence[str], chosen: Sequence[str], missing: int
) -> str:
    """The host for the rest of a job where it has most and that has room for it, else the one with most room.

    The first one is its own: somebody has to stay.
    """
    hosts = {**dict.fromkeys(roomy if chosen else (), ()), **own}
    has = {host: len(own.get(host, ())) for host in hosts if host not in chosen}
    room = {host: count + len(free[host]) for host, count in has.items()}
    fitting = [host for host in room if room[host] >= missing]
    if fitting:
        return max(fitting, key=lambda host: (has[host], -room[host]))
    return max(room, key=lambda host: (room[host], has[host]))


def _by_host(jobs: Sequence[Job], hosts: Container[str]) -> dict[str, list[Job]]:
    """The jobs that have devices of each of the hosts, in a fixed order."""
    found: dict[str, list[Job]] = {}
    for job in sorted(jobs, key=lambda job: job.id):
        for part in job.held:
            if part.host in hosts:
                found.setdefault(part.host, []).append(job)
    return found


def _exchange(
    work: Work,
    job: Job,
    onto_one: Sequence[HostDevices],
    neighbours: Mapping[str, Sequence[Job]],
    packed: Packed,
) -> None:
    for onto in onto_one:
        left = len(onto.devices)
        if left < job.min or usable(job, left) != left:
            continue
        elsewhere = tuple(part for part in job.held if part.host != onto.host)
        for other in _partners(job, onto, elsewhere, neighbours):
            cost = 2 * (job.resize_cost + other.resize_cost)
            hosts = {part.host for part in (*job.held, *other.held)}
            if not packed.hosts.isdisjoint(hosts) or not _is_worth(work, packed, cost, job, other):
                continue
            packed.hosts.update(hosts)
            packed.parts[job.id] = (onto,)
            packed.parts[other.id] = _without(other.held, onto.host, job.size - left)
            packed.moves[job.id] = Move((onto.host,), cost, other.id)
            return


def _partners(
    job: Job, onto: HostDevices, elsewhere: Parts, neighbours: Mapping[str, Sequence[Job]]
) -> Iterator[Job]:
    """Jobs that have what another one lacks on a host, and are no worse off with what it has elsewhere."""
    count = job.size - len(onto.devices)
    for other in neighbours[onto.host]:
        there = next(part for part in other.held if part.host == onto.host)
        left = other.size - count
        if (
            other is job
            or len(there.devices) < count
            or left < max(1, other.min)
            or usable(other, left) != left
        ):
            continue
        rest = _without(other.held, onto.host, count)
        after = grown(rest, count, Free({part.host: part.devices for part in elsewhere}))
        if len(after) <= len(other.held):
            yield other


def _without(parts: Parts, host: str, count: int) -> Parts:
    """The parts without the last `count` devices of one host."""
    return tuple(
        cut for part in parts for cut in (shrunk((part,), count, set()) if part.host == host else (part,))
    )
