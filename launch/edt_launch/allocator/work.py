"""The figures of one decision, by the jobs' positions in the caller's sequence."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from edt_launch.allocator.model import Cluster, Job
from edt_launch.allocator.tree import Node, grow


@dataclass(slots=True, eq=False)
class Work:
    """What the steps of a decision read and fill in.

    Attributes:
        nodes: the owners' tree, the root first.
        homes: the node that each job is right below.
        held: workers that each job has on hosts that are up.
        soon: the same once hand-overs under way are done.
        runs: whether it holds something, or is about to.
        low, high: fewest and most workers that it can run with; both 0 if there is no such number.
        tiers: (tier, jobs of it), the highest first.
        share: real share.
        target: whole number by fairness alone, whatever it holds.
        is_admitted: whether it is to run.
        kept: GPUs that higher tiers must leave it.
        is_pinned: whether it is admitted before all others, within a guarantee of an owner above it.
        claims: what owners may claim of their guarantees, by their names.
        reserved: the job that devices are being kept for, and the node that lacks them.
    """

    now: float
    cluster: Cluster
    jobs: Sequence[Job]
    nodes: list[Node]
    homes: list[Node]
    held: list[int]
    soon: list[int]
    runs: list[bool]
    low: list[int]
    high: list[int]
    tiers: list[tuple[int, list[int]]]
    share: list[float]
    target: list[int]
    is_admitted: list[bool]
    kept: list[int]
    is_pinned: list[bool]
    claims: dict[str, int] = field(default_factory=dict)
    reserved: tuple[int, Node] | None = None
    owner_steps: dict[str, int] = field(default_factory=dict)
    job_steps: dict[str, int] = field(default_factory=dict)


def gather(now: float, cluster: Cluster, jobs: Sequence[Job]) -> Work:
    """The figures at the start of a decision.

    Raises:
        TreeError: the owners do not form a tree.
    """
    owners = {job.owner for job in jobs}
    nodes = grow(cluster.owners, owners, cluster.size)
    by_name = {node.name: node for node in nodes}
    up = {host.name for host in cluster.hosts if host.is_up}
    held = []
    for job in jobs:
        size = 0
        for part in job.held:
            if part.host in up:
                size += len(part.devices)
        held.append(size)
    pending = cluster.memory.pending
    soon = [pending.get(job.id, size) for size, job in zip(held, jobs, strict=True)] if pending else held
    low, high = [job.min for job in jobs], [job.max for job in jobs]
    if any(job.allowed is not None or not 1 <= job.min <= job.max for job in jobs):
        low, high = ([], []) if not jobs else map(list, zip(*map(bounds, jobs), strict=True))
    count = len(jobs)
    return Work(
        now=now,
        cluster=cluster,
        jobs=jobs,
        nodes=nodes,
        homes=[by_name[job.owner] for job in jobs],
        held=held,
        soon=soon,
        runs=[before > 0 or size > 0 for before, size in zip(held, soon, strict=True)],
        low=low,
        high=high,
        tiers=_by_tier(jobs),
        share=[0.0] * count,
        target=[0] * count,
        is_admitted=[False] * count,
        kept=[0] * count,
        is_pinned=[False] * count,
    )


def _by_tier(jobs: Sequence[Job]) -> list[tuple[int, list[int]]]:
    tiers = sorted({job.tier for job in jobs}, reverse=True)
    if len(tiers) == 1:
        return [(tiers[0], list(range(len(jobs))))]
    return [(tier, [index for index, job in enumerate(jobs) if job.tier == tier]) for tier in tiers]


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
