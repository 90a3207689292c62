"""The figures of one decision, by the jobs' positions in the caller's sequence."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite, isnan
from operator import gt

import numpy as np
import numpy.typing as npt

from edt_launch.allocator.model import Cluster, Job, Preemption
from edt_launch.allocator.tree import WEIGHTS, Layer, TreeNode, grow
from edt_launch.allocator.useful import gaps, useful

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

MAX_WORKERS = 2**31 - 1
"""Workers of a job."""

SECONDS = ("resize_cost", "start_cost", "protected", "submitted", "started", "resized", "waiting_since")
"""Times and costs of a job."""

MAX_USAGE = 1e18
"""Seconds or GPU-seconds in any one figure that is remembered of a job."""


@dataclass(slots=True, eq=False)
class Work:
    """What the steps of a decision read and fill in.

    Attributes:
        nodes: the owners' tree, the root first.
        ids: of the jobs.
        homes: the node that each job is right below.
        positions: of these nodes among all.
        is_whole: whether all hosts are up, and none is draining.
        held: workers that each job has on hosts that are up.
        soon: the same once hand-overs under way are done.
        last: the whole numbers that the last decision came to, which this one keeps where it may.
        last_pinned: the jobs that it found room for in guarantees, numbered in that order, by their ids.
        last_reservation: id of the job that it kept devices for, if any.
        runs: whether it holds something, or is about to.
        is_nonpreemptible: whether it runs and may not be suspended.
        low, high: fewest and most workers that it can run with, and makes use of; both 0 if there is no such
            number, or the fewest are more than a limit above it.
        gaps: pairs of numbers between which a job is offered none, by its position.
        tiers: (tier, jobs of it), the highest first.
        is_stepwise: whether some job is offered some numbers of workers only.
        has_speedups: whether some owner's jobs divide what they have by their speed-ups.
        layers: who divides what among whom in the pass over one tier, from the root down.
        share: real share.
        target: whole number by fairness alone, whatever it holds.
        is_admitted: whether it is to run.
        reserved: GPUs that higher tiers must leave it.
        is_pinned: whether it is admitted before all others, within a guarantee of an owner above it.
        pinned: those jobs, in the order in which room was found for them.
        claims: what owners may claim of their guarantees, by their names.
        reservation: the job that devices are being kept for, and the node that lacks them.
        owner_steps, job_steps: quarters of a power of two by which weights are raised, by owners' names and
            jobs' ids.
    """

    now: float
    cluster: Cluster
    jobs: Sequence[Job]
    nodes: list[TreeNode]
    ids: list[str]
    homes: list[TreeNode]
    positions: Ints
    is_whole: bool
    held: list[int]
    soon: list[int]
    last: list[int]
    last_pinned: dict[str, int]
    last_reservation: str | None
    runs: list[bool]
    is_nonpreemptible: list[bool]
    low: list[int]
    high: list[int]
    gaps: dict[int, list[tuple[int, int]]]
    tiers: list[tuple[int, list[int]]]
    is_stepwise: bool
    has_speedups: bool
    share: list[float]
    layers: list[Layer] = field(default_factory=list)
    target: list[int] = field(default_factory=list)
    is_admitted: list[bool] = field(default_factory=list)
    reserved: list[int] = field(default_factory=list)
    is_pinned: list[bool] = field(default_factory=list)
    pinned: list[int] = field(default_factory=list)
    claims: dict[str, int] = field(default_factory=dict)
    reservation: tuple[int, TreeNode] | None = None
    owner_steps: dict[str, int] = field(default_factory=dict)
    job_steps: dict[str, int] = field(default_factory=dict)

    def sums(self, values: Sequence[int], members: Sequence[int] | None = None) -> list[int]:
        """Sums of the values of all jobs, or of some, right below each node, by the nodes' positions."""
        above, numbers = self.positions, np.array(values, dtype=np.int64)
        if members is not None:
            chosen = np.array(members, dtype=np.int64)
            above, numbers = above[chosen], numbers[chosen]
        sums: list[int] = np.bincount(above, numbers, len(self.nodes)).astype(np.int64).tolist()
        return sums

    def offered(self, index: int, count: int) -> int:
        """Most workers up to `count` that a job is offered, or 0."""
        size = usable(self.jobs[index], count)
        for below, above in reversed(self.gaps.get(index, ())):
            if below < size < above:
                size = below
        return size

    def next_offered(self, index: int, count: int) -> int | None:
        """Fewest workers above `count` that a job is offered, None if there is no such number."""
        size = next_usable(self.jobs[index], count)
        for below, above in self.gaps.get(index, ()):
            if size is not None and below < size < above:
                size = next_usable(self.jobs[index], above - 1)
        return size


def could_run(work: Work, index: int) -> bool:
    """Whether there is room for a job, beside what owners keep."""
    need = work.low[index]
    return need > 0 and all(need <= node.limit - node.withheld_below for node in work.homes[index].path)


def gather(now: float, cluster: Cluster, jobs: Sequence[Job]) -> Work:
    """The figures at the start of a decision.

    Raises:
        TreeError: the owners do not form a tree, or a figure of theirs is out of range.
        ValueError: a figure of a job is out of range.
    """
    if not isfinite(now):
        raise ValueError(f"the time is {now}: it has to be finite")
    _check(jobs)
    is_whole = all(host.is_up and not host.is_draining for host in cluster.hosts)
    held = _held(cluster, jobs, is_whole)
    is_nonpreemptible = [
        size > 0 and job.preemption is not Preemption.TO_ZERO for job, size in zip(jobs, held, strict=True)
    ]
    if any(is_nonpreemptible):
        jobs = [_keeping(job, size) for job, size in zip(jobs, held, strict=True)]
    ids, owners = [job.id for job in jobs], [job.owner for job in jobs]
    nodes = grow(cluster.owners, owners, cluster.size + _kept_on_draining(cluster, jobs))
    by_name = {node.name: node.position for node in nodes}
    positions = [by_name[owner] for owner in owners]
    pending, due = cluster.memory.pending, cluster.memory.due
    soon = list(map(pending.get, ids, held)) if pending else held
    last = list(map(due.get, ids, soon)) if due else soon
    low, high = [job.min for job in jobs], [job.max for job in jobs]
    is_stepwise = any(job.allowed is not None for job in jobs)
    if is_stepwise or min(low, default=1) < 1 or any(map(gt, low, high)):
        low, high = ([], []) if not jobs else map(list, zip(*map(bounds, jobs), strict=True))
    has_speedups = cluster.options.by_speedup and any(job.speedup for job in jobs)
    if has_speedups:
        high = [max(least, _useful(job, most)) for job, least, most in zip(jobs, low, high, strict=True)]
    left_out = _left_out(jobs, low, high) if has_speedups else {}
    at = np.array(positions, dtype=np.int64)
    for index, node in enumerate(map(nodes.__getitem__, positions)):
        if is_nonpreemptible[index]:
            node.nonpreemptible += low[index]
    for node in reversed(nodes):  # a limit that came later takes nothing from them
        node.limit = max(node.limit, node.nonpreemptible)
        if node.parent is not None:
            node.parent.nonpreemptible += node.nonpreemptible
    too_large = np.flatnonzero(np.array(low, dtype=np.int64) > _least_limits(nodes)[at]).tolist()
    if too_large:
        low, high = [*low], [*high]
    for index in too_large:
        low[index] = high[index] = 0
    return Work(
        now=now,
        cluster=cluster,
        jobs=jobs,
        nodes=nodes,
        ids=ids,
        homes=[nodes[position] for position in positions],
        positions=at,
        is_whole=is_whole,
        held=held,
        soon=soon,
        last=last,
        last_pinned={job: number for number, job in enumerate(cluster.memory.pinned)},
        last_reservation=cluster.memory.reserved,
        is_nonpreemptible=is_nonpreemptible,
        runs=[before > 0 or size > 0 for before, size in zip(held, soon, strict=True)],
        low=low,
        high=high,
        gaps=left_out,
        tiers=_by_tier(jobs),
        is_stepwise=is_stepwise or bool(left_out),
        has_speedups=has_speedups,
        share=[0.0] * len(jobs),
    )


def _keeping(job: Job, size: int) -> Job:
    """A job of which nothing may be taken, as one that needs what it has on hosts that are up."""
    if job.preemption is not Preemption.NONE or not size:
        return job
    allowed = None if job.allowed is None else (size, *(count for count in job.allowed if count > size))
    return replace(job, min=size, max=max(size, job.max), allowed=allowed)


def _kept_on_draining(cluster: Cluster, jobs: Sequence[Job]) -> int:
    """Devices of draining hosts that jobs keep, beside those of the other hosts."""
    draining = {host.name for host in cluster.hosts if host.is_up and host.is_draining}
    fixed = [job for job in jobs if job.is_fixed] if draining else []
    return sum(len(part.devices) for job in fixed for part in job.held if part.host in draining)


def _least_limits(nodes: Sequence[TreeNode]) -> Floats:
    """The lowest limit from each node up to the root."""
    limits = np.array([node.limit for node in nodes])
    for node in nodes[1:]:
        assert node.parent is not None
        limits[node.position] = min(node.limit, limits[node.parent.position])
    return limits


def _check(jobs: Sequence[Job]) -> None:
    """Refuse figures that nothing can be worked out from; sums find them fast, as they are rare.

    A sum of times and costs is not a number only if one of these is not, as none is negatively infinite.
    """
    weights, most = [job.weight for job in jobs], [job.max for job in jobs]
    used = [use for job in jobs for use in (job.usage.service, job.usage.entitlement, job.usage.attained)]
    is_known = isfinite(sum(weights) + sum(used)) and min(used, default=0.0) >= 0
    lightest, heaviest = WEIGHTS
    is_weighed = min(weights, default=1.0) >= lightest and max(weights, default=1.0) <= heaviest
    is_within = max(most, default=0) <= MAX_WORKERS and max(used, default=0.0) <= MAX_USAGE
    seconds = [
        job.resize_cost
        + job.start_cost
        + job.protected
        + job.submitted
        + (job.started or 0.0)
        + (job.resized or 0.0)
        + (job.waiting_since or 0.0)
        + job.usage.at
        for job in jobs
    ]
    points = [point for job in jobs if job.speedup for point in job.speedup]
    speeds = [speed for _, speed in points]
    are_speeds = min(speeds, default=1.0) > 0 and isfinite(sum(speeds))
    are_counts = min([count for count, _ in points], default=1) > 0
    are_costs = min([min(job.resize_cost, job.start_cost) for job in jobs], default=0.0) >= 0
    is_sound = is_known and is_weighed and is_within and are_speeds and are_counts and are_costs
    if is_sound and not isnan(sum(seconds)):
        return
    for job in jobs:
        if not lightest <= job.weight <= heaviest:
            raise ValueError(
                f"job {job.id!r} has weight {job.weight:g}: it has to be from {lightest:g} to {heaviest:g}"
            )
        if job.max > MAX_WORKERS:
            raise ValueError(f"job {job.id!r} has max {job.max}: it has to be {MAX_WORKERS} at most")
        usage = job.usage
        if isnan(usage.at) or not all(
            0 <= use <= MAX_USAGE for use in (usage.service, usage.entitlement, usage.attained)
        ):
            raise ValueError(f"job {job.id!r} has {usage}: its figures have to be from 0 to {MAX_USAGE:g}")
        for name in SECONDS:
            if (value := getattr(job, name)) is not None and isnan(value):
                raise ValueError(f"job {job.id!r} has {name} {value}: it has to be a number")
        for name in ("resize_cost", "start_cost"):
            if (value := getattr(job, name)) < 0:
                raise ValueError(f"job {job.id!r} has {name} {value:g}: it has to be 0 at least")
        if not all(count > 0 and 0 < speed < inf for count, speed in job.speedup):
            raise ValueError(
                f"job {job.id!r} has speedup {job.speedup}: its numbers have to be above 0, and finite"
            )


def _held(cluster: Cluster, jobs: Sequence[Job], is_whole: bool) -> list[int]:
    if is_whole:
        return [
            len(held[0].devices) if len(held) == 1 else sum([len(part.devices) for part in held])
            for held in [job.held for job in jobs]
        ]
    up = {host.name for host in cluster.hosts if host.is_up}
    return [sum([len(part.devices) for part in job.held if part.host in up]) for job in jobs]


def _by_tier(jobs: Sequence[Job]) -> list[tuple[int, list[int]]]:
    tiers = [job.tier for job in jobs]
    if len(set(tiers)) == 1:
        return [(tiers[0], list(range(len(jobs))))]
    members: dict[int, list[int]] = {}
    for index, tier in enumerate(tiers):
        members.setdefault(tier, []).append(index)
    return sorted(members.items(), reverse=True)


def _useful(job: Job, most: int) -> int:
    """Most workers that a job makes use of, 0 where its minimum is more than that."""
    return usable(job, useful(job.speedup, most, job.allowed)) if job.speedup else most


def _left_out(
    jobs: Sequence[Job], low: Sequence[int], high: Sequence[int]
) -> dict[int, list[tuple[int, int]]]:
    """Pairs of numbers between which jobs are offered none, by their positions; never their minimums."""
    pairs = {
        index: [
            (usable(job, max(low[index], below)), above)
            for below, above in gaps(job.speedup, high[index], job.allowed)
            if above > low[index]
        ]
        for index, job in enumerate(jobs)
        if len(job.speedup) > 1 and high[index]
    }
    return {index: own for index, own in pairs.items() if own}


def bounds(job: Job) -> tuple[int, int]:
    """Fewest and most workers that a job can run with; (0, 0) if there is no such number."""
    least = max(1, job.min)
    if job.allowed is None:
        return (least, job.max) if least <= job.max else (0, 0)
    usable = [count for count in job.allowed if least <= count <= job.max]
    return (min(usable), max(usable)) if usable else (0, 0)


def usable(job: Job, count: int) -> int:
    """Most workers up to `count` that a job can run with, or 0."""
    if job.allowed is None and 1 <= job.min <= count <= job.max:
        return count
    least, most = bounds(job)
    if count < least or not least:
        return 0
    if job.allowed is None:
        return min(count, most)
    numbers = sorted(number for number in job.allowed if least <= number <= most)
    return numbers[bisect_right(numbers, count) - 1]


def next_usable(job: Job, count: int) -> int | None:
    """Fewest workers above `count` that a job can run with, None if there is no such number."""
    least, most = bounds(job)
    if count >= most:
        return None
    if job.allowed is None:
        return max(least, count + 1)
    return min(number for number in job.allowed if max(least, count + 1) <= number <= most)


class Room:
    """What is still free of the limits along the owners' tree.

    What owners are guaranteed, and can use, counts as taken by them.
    """

    def __init__(self, work: Work, fixed: Sequence[int], claims: Mapping[str, int]) -> None:
        """Start with what is taken right below each node, by position, and what it may claim, by name."""
        self._homes = work.homes
        self._claims = claims
        self._used = [*fixed]
        for node in reversed(work.nodes):
            if node.parent is not None:
                self._used[node.parent.position] += max(self._used[node.position], claims.get(node.name, 0))

    def lacking(self, index: int, count: int) -> TreeNode | None:
        """The node, nearest first, that has no room for `count` more GPUs of a job."""
        for node in self._homes[index].path:
            before, after = self._step(node, count)
            if after > node.limit:
                return node
            count = after - before
        return None

    def is_guaranteed(self, index: int, count: int) -> bool:
        """Whether some node above a job has that much left of its guarantee."""
        return any(self._used[node.position] + count <= node.guarantee for node in self._homes[index].path)

    def fits(self, nodes: Sequence[TreeNode]) -> bool:
        """Whether what is taken and claimed keeps all limits."""
        return all(max(self._step(node, 0)) <= node.limit for node in nodes)

    def take(self, index: int, count: int) -> None:
        """Count GPUs as taken by a job."""
        for node in self._homes[index].path:
            before, after = self._step(node, count)
            self._used[node.position] += count
            count = after - before

    def _step(self, node: TreeNode, count: int) -> tuple[int, int]:
        claim, used = self._claims.get(node.name, 0), self._used[node.position]
        return max(claim, used), max(claim, used + count)
