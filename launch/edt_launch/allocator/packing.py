"""Moving jobs onto one host that lie on several though they fit one.

Workers of one host reach each other faster than through the network, so such a job is taken to get faster by
`GAIN` once it lies on one, and its devices to stay what they are for as long again as they have been so.
The move is made as soon as it brings more than it costs, once nothing else has changed for a while: onto that
of its hosts where it has most, if there is room, or else in exchange with another job, which then has as many
devices where the first one had them, and lies on no more hosts than before.

An exchange is two resizes of both: first they give devices up, then they get those of the other.
"""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field

from edt_launch.allocator.model import HostDevices, Job
from edt_launch.allocator.placement import Free, Parts, grown, shrunk, survey
from edt_launch.allocator.work import Work, usable

GAIN = 0.1
"""By how much of its speed a job is taken to get faster on one host."""


@dataclass(slots=True, eq=False)
class Packed:
    """Moves.

    Attributes:
        parts: what the allocation files of jobs that move are to say now, by their ids.
        hosts: host onto which each job moves, by the ids of those that are to lie on one.
        again_at: times at which a move becomes worth it.
    """

    parts: dict[str, Parts] = field(default_factory=dict)
    hosts: dict[str, str] = field(default_factory=dict)
    again_at: list[float] = field(default_factory=list)


def is_quiet(work: Work, sizes: Sequence[int]) -> bool:
    """Whether no job is to have another size, is being resized, or is on a host that is down or draining."""
    if work.held != sizes or any(job.leaving for job in work.jobs):
        return False
    usable = {host.name for host in work.cluster.hosts if host.is_up and not host.is_draining}
    return work.is_whole or all(part.host in usable for job in work.jobs for part in job.held)


def pack(work: Work) -> Packed:
    """Moves that are worth it now, in a cluster in which nothing else is to change."""
    packed = Packed()
    scattered = [(job, size) for job, size in zip(work.jobs, work.held, strict=True) if len(job.held) > 1]
    if not scattered:
        return packed
    room = {host.name: len(host.devices) for host in work.cluster.hosts}
    largest = max(room.values())
    moving = []
    for job, size in scattered:
        onto = [part for part in job.held if room[part.host] >= size] if size <= largest else []
        if onto and _is_worth(work, packed, job.resize_cost, job):
            moving.append((job, sorted(onto, key=lambda part: -len(part.devices))))
    if not moving:
        return packed
    goals = {part.host for _, onto in moving for part in onto}
    hosts = [host for host in work.cluster.hosts if host.name in goals]
    site = survey(hosts, work.jobs, {job.id: job.held for job in work.jobs})
    neighbours = _by_host(work.jobs, goals)
    for job, onto in sorted(moving, key=lambda move: (_since(move[0]), move[0].id)):
        if job.id not in packed.parts and not any(_move(job, part, site.free, packed) for part in onto):
            _exchange(work, job, onto, neighbours, packed)
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


def _move(job: Job, onto: HostDevices, free: Free, packed: Packed) -> bool:
    missing = job.size - len(onto.devices)
    if len(free[onto.host]) < missing:
        return False
    packed.parts[job.id] = (HostDevices(onto.host, (*onto.devices, *free.take(onto.host, missing))),)
    packed.hosts[job.id] = onto.host
    return True


def _by_host(jobs: Sequence[Job], hosts: Container[str]) -> dict[str, list[Job]]:
    """The jobs that have devices of each of the hosts, in a fixed order."""
    found: dict[str, list[Job]] = {}
    for job in sorted(jobs, key=lambda job: job.id):
        for part in job.held:
            if part.host in hosts:
                found.setdefault(part.host, []).append(job)
    return found


def _exchange(
    work: Work, job: Job, hosts: Sequence[HostDevices], neighbours: dict[str, list[Job]], packed: Packed
) -> None:
    for onto in hosts:
        left = len(onto.devices)
        if left < job.min or usable(job, left) != left:
            continue
        elsewhere = tuple(part for part in job.held if part.host != onto.host)
        for other in _partners(job, onto, elsewhere, neighbours):
            if other.id in packed.parts or not _is_worth(
                work, packed, 2 * (job.resize_cost + other.resize_cost), job, other
            ):
                continue
            packed.parts[job.id] = (onto,)
            packed.parts[other.id] = _without(other.held, onto.host, job.size - left)
            packed.hosts[job.id] = onto.host
            return


def _partners(
    job: Job, onto: HostDevices, elsewhere: Parts, neighbours: dict[str, list[Job]]
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
