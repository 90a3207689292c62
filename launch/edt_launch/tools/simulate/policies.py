"""Policies of a replay: the service's own allocator, and those that others use, written from their papers.

The others are rigid: a job runs on exactly the GPUs that it requested, or waits. They place a job that
starts on the hosts with most free devices, and it stays there until it ends or is suspended.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from edt_launch.allocator.decide import decide
from edt_launch.allocator.model import Cluster, Host, HostDevices, Job, Options, Owner, Plan, Usage
from edt_launch.allocator.speedup import hull
from edt_launch.allocator.usage import remember
from edt_launch.allocator.useful import useful
from edt_launch.tools.simulate.replay import Live, Timing
from edt_launch.tools.simulate.runtime import speedup
from edt_launch.tools.simulate.trace import Trace, TraceJob

Assignments = dict[str, tuple[HostDevices, ...]]


class FairShare:
    """The allocator, with every user of the trace as an owner below the root.

    Args:
        trace: whose jobs will come: their speed-ups are worked out once.
        hosts: the cluster.
        timing: what the allocator takes a resize, and a start, to cost.
        options: its constants.
        knows_speed: whether it has learned the jobs' speed-ups (on packed hosts), or takes them to be linear.
        by_user: whether users share the cluster and jobs their user's part, or all jobs the cluster directly.
    """

    name = "EDT"

    def __init__(
        self,
        trace: Trace,
        hosts: tuple[Host, ...],
        timing: Timing,
        options: Options | None = None,
        knows_speed: bool = True,
        by_user: bool = True,
    ) -> None:
        users = sorted({job.user for job in trace.jobs}) if by_user else []
        owners = (Owner("", None), *(Owner(user) for user in users))
        self._cluster = Cluster(hosts, owners, options or Options())
        per_host = max(len(host.devices) for host in hosts)
        gpus = sum(len(host.devices) for host in hosts)
        self._jobs = {
            job.id: Job(
                id=job.id,
                owner=job.user if by_user else "",
                min=job.min,
                max=job.max,
                submitted=job.submitted,
                weight=job.weight,
                tier=job.priority,
                resize_cost=timing.resize_cost,
                start_cost=timing.cost_of_start,
                speedup=_learned(job, min(job.max, gpus), per_host) if knows_speed else (),
            )
            for job in trace.jobs
        }
        self._usage: dict[str, Usage] = {}
        self._plan: Plan | None = None

    def decide(self, now: float, live: Sequence[Live]) -> Assignments:  # noqa: D102
        jobs: Sequence[Job] = [self._job(entry) for entry in live]
        if self._plan is not None:
            owners, jobs = remember(now, self._cluster, jobs, self._plan)
            self._cluster = replace(self._cluster, owners=tuple(owners))
            self._usage = {job.id: job.usage for job in jobs}
        self._plan, _ = decide(now, self._cluster, jobs)
        self._cluster = replace(self._cluster, memory=self._plan.memory)
        return dict(self._plan.assignments)

    def _job(self, entry: Live) -> Job:
        job = self._jobs[entry.job.id]
        names = "held", "leaving", "started", "resized", "waiting_since"
        known: dict[str, Any] = {name: getattr(entry, name) for name in names}
        return replace(job, **known, usage=self._usage.get(job.id, job.usage))


def _learned(job: TraceJob, most: int, per_host: int) -> tuple[tuple[int, float], ...]:
    """All that the allocator takes of the job's speed-up: its corners up to where more workers do not help.

    Beyond are the speed with one more, and the best one, from which that follows.
    """
    points = speedup(job.run_time, most, per_host)
    limit = useful(points, most)
    corners = {(int(workers), speed) for workers, speed in hull(points[:limit]) if workers}
    return tuple(sorted({*corners, *points[limit : limit + 1], max(points, key=lambda point: point[1])}))


@dataclass(frozen=True)
class Fifo:
    """First come, first served: who cannot start yet keeps those behind it waiting. Nobody is suspended."""

    hosts: tuple[Host, ...]
    name: str = "FIFO"

    def decide(self, now: float, live: Sequence[Live]) -> Assignments:  # noqa: D102
        chosen = [entry for entry in live if entry.held]
        free = _size(self.hosts) - sum(entry.job.requested for entry in chosen)
        for entry in live:
            if entry.held:
                continue
            free -= entry.job.requested
            if free < 0:
                break
            chosen.append(entry)
        return place(self.hosts, live, chosen)


@dataclass(frozen=True)
class StrictPriority:
    """The most urgent first, then first come; a job that is overtaken is suspended, with its state saved."""

    hosts: tuple[Host, ...]
    priority: Callable[[Live], int] = lambda entry: entry.job.priority
    name: str = "strict priority"

    def decide(self, now: float, live: Sequence[Live]) -> Assignments:  # noqa: D102
        order = sorted(live, key=lambda entry: (-self.priority(entry), entry.job.submitted))
        return place(self.hosts, live, fill(self.hosts, order))


@dataclass
class Tiresias:
    """Discretized two-dimensional least attained service: Gu et al., Tiresias, NSDI 2019, section 3.

    A job's queue follows from the service that it has attained, its GPUs times the seconds that it has run.
    The queue with the least goes first; in a queue the order is that of arrival in it. There is no promotion
    (PROMOTEKNOB infinite, the paper's default).

    Attributes:
        thresholds: GPU-seconds at which a job falls into the next queue. 16 GPU-hours and two queues, as in
            the evaluation of Pollux (Qiao et al., OSDI 2021).
    """

    hosts: tuple[Host, ...]
    thresholds: tuple[float, ...] = (57600.0,)
    name: str = "Tiresias-like"
    _arrivals: dict[str, tuple[int, int]] = field(default_factory=dict)
    _count: int = 0

    def decide(self, now: float, live: Sequence[Live]) -> Assignments:  # noqa: D102
        for entry in live:
            queue = sum(entry.service >= threshold for threshold in self.thresholds)
            if self._arrivals.get(entry.job.id, (-1, 0))[0] != queue:
                self._arrivals[entry.job.id] = (queue, self._count)
                self._count += 1
        order = sorted(live, key=lambda entry: self._arrivals[entry.job.id])
        return place(self.hosts, live, fill(self.hosts, order))


def fill(hosts: Iterable[Host], order: Iterable[Live]) -> list[Live]:
    """Who runs when everybody is asked in this order, and whoever does not fit is passed over."""
    free = _size(hosts)
    chosen = []
    for entry in order:
        if entry.job.requested <= free:
            free -= entry.job.requested
            chosen.append(entry)
    return chosen


def place(hosts: Iterable[Host], live: Iterable[Live], chosen: Sequence[Live]) -> Assignments:
    """Devices for the chosen jobs: those who run stay where they are, the others take the emptiest hosts.

    Those wait until there is room for all of them: what others still hold is not given away before they have
    let go of it.
    """
    assignments = {entry.job.id: entry.held for entry in chosen if entry.held}
    taken = {
        (part.host, device)
        for entry in live
        for part in (*entry.held, *entry.leaving)
        for device in part.devices
    }
    free = {host.name: [d for d in host.devices if (host.name, d) not in taken] for host in hosts}
    new = [entry.job for entry in chosen if not entry.held]
    if sum(job.requested for job in new) <= sum(map(len, free.values())):
        assignments |= {job.id: _take(free, job.requested) for job in new}
    return assignments


def _take(free: Mapping[str, list[str]], count: int) -> tuple[HostDevices, ...]:
    """Take `count` devices out of `free`, of the hosts with most of them first."""
    parts = []
    for host in sorted(free, key=lambda name: (-len(free[name]), name)):
        devices = free[host][:count]
        if devices:
            del free[host][: len(devices)]
            parts.append(HostDevices(host, tuple(devices)))
            count -= len(devices)
    return tuple(parts)


def _size(hosts: Iterable[Host]) -> int:
    return sum(len(host.devices) for host in hosts)
