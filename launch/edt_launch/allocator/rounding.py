"""Whole numbers from real shares, with an error below one GPU at every node of the tree at once.

The children of a node are rounded given the node's own whole number, which is the floor or the ceiling of its
real share: exactly as many children get their ceiling as it takes. As the floors of the parts never exceed
the floor of the sum, nor the ceilings fall below its ceiling, this always works out, and every node is the
floor or the ceiling of its share (controlled rounding on a tree; Cox, 1987).
"""

from collections.abc import Callable, Sequence
from math import inf

from edt_launch.allocator.filling import SLACK
from edt_launch.allocator.model import Job
from edt_launch.allocator.speedup import best_division
from edt_launch.allocator.tree import Node
from edt_launch.allocator.work import Work, next_usable, usable

Tie = tuple[float, str]


def round_down_the_tree(work: Work) -> None:
    """Fill in the whole number of every node and job of the pass whose real shares are there."""
    share, soon, target, jobs = work.share, work.soon, work.target, work.jobs
    root = work.nodes[0]
    root.target = round(root.share)
    for node in work.nodes:
        children, members = node.children, node.jobs
        if not children and not members:
            continue
        shares = [child.share for child in children] + [share[index] for index in members]
        floors = [int(part + SLACK) for part in shares]
        missing = node.target - node.fixed - sum(floors)
        if missing > 0:
            holds = [child.held for child in children] + [soon[index] for index in members]
            _raise_some(floors, missing, shares, holds, _ties(children, [jobs[index] for index in members]))
        for child, whole in zip(children, floors, strict=False):
            child.target = whole
        for position, index in enumerate(members, len(children)):
            target[index] = floors[position]
        if work.cluster.options.by_speedup and any(jobs[index].speedup for index in members):
            _speed_up(work, node)


def _ties(children: Sequence[Node], jobs: Sequence[Job]) -> Callable[[int], Tie]:
    """What decides between equals, by position: owners by name, then jobs by submit time."""
    count = len(children)

    def tie(position: int) -> Tie:
        if position < count:
            return -inf, children[position].name
        job = jobs[position - count]
        return job.submitted, job.id

    return tie


def _raise_some(
    floors: list[int], missing: int, shares: Sequence[float], holds: Sequence[int], tie: Callable[[int], Tie]
) -> None:
    """Raise `missing` of the floors by one: of those who hold more already, then of the furthest behind."""
    broken = [position for position, part in enumerate(shares) if part - floors[position] > SLACK]
    keeping = [position for position in broken if holds[position] > floors[position]]
    if len(keeping) != missing:
        broken.sort(
            key=lambda position: (
                holds[position] <= floors[position],
                round(holds[position] - shares[position], 6),
                tie(position),
            )
        )
        keeping = broken[:missing]
    for position in keeping:
        floors[position] += 1


def _speed_up(work: Work, node: Node) -> None:
    """Divide among a node's own jobs by what they gain instead."""
    members = node.jobs
    sizes = best_division(
        sum(work.target[index] for index in members),
        [work.jobs[index] for index in members],
        [work.low[index] for index in members],
        [work.high[index] for index in members],
    )
    for index, size in zip(members, sizes, strict=True):
        work.target[index] = size


def fit_allowed(work: Work) -> None:
    """Take from jobs what they cannot run with, and give it to whoever can use it, higher tiers first."""
    for index, job in enumerate(work.jobs):
        if job.allowed is not None and work.target[index]:
            work.target[index] = usable(job, work.target[index])
    top_up(work)


def top_up(work: Work) -> None:
    """Give out what no share has claimed, to the jobs that are furthest below their share first."""
    root = work.nodes[0]
    left = int(root.limit) - root.unlent - sum(work.target)
    if left <= 0:
        return
    behind = [
        index
        for index, is_in in enumerate(work.is_admitted)
        if is_in and work.target[index] < work.high[index]
    ]
    if not behind:
        return
    used = totals(work, work.target)

    def rank(index: int) -> tuple[int, float, Tie]:
        job: Job = work.jobs[index]
        return -job.tier, round(work.target[index] - work.share[index], 6), (job.submitted, job.id)

    has_changed = True
    while left > 0 and has_changed:
        has_changed = False
        for index in sorted(behind, key=rank):
            size = next_usable(work.jobs[index], work.target[index])
            if size is None:
                continue
            step = size - work.target[index]
            path = work.homes[index].path
            if step <= left and all(used[node.name] + step <= node.limit for node in path):
                for node in path:
                    used[node.name] += step
                work.target[index] = size
                left -= step
                has_changed = True


def totals(work: Work, sizes: Sequence[int]) -> dict[str, int]:
    """What the jobs below each node have together, unlent GPUs included, by its name."""
    sums = {node.name: node.unlent for node in work.nodes}
    for index, size in enumerate(sizes):
        sums[work.homes[index].name] += size
    for node in reversed(work.nodes):
        if node.parent is not None:
            sums[node.parent.name] += sums[node.name]
    return sums
