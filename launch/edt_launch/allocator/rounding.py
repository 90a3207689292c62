"""Whole numbers from real shares, with an error below one GPU at every node of the tree at once.

The children of a node are rounded given the node's own whole number, which is the floor or the ceiling of its
real share: exactly as many children get their ceiling as it takes. As the floors of the parts never exceed
the floor of the sum, nor the ceilings fall below its ceiling, this always works out, and every node is the
floor or the ceiling of its share (controlled rounding on a tree; Cox, 1987).
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf

from edt_launch.allocator.filling import SLACK
from edt_launch.allocator.model import Job
from edt_launch.allocator.speedup import best_division
from edt_launch.allocator.tree import Node
from edt_launch.allocator.work import Room, Work, next_usable, usable

Tie = tuple[float, str]


def round_down_the_tree(work: Work) -> None:
    """Fill in the whole number of every node and job of the pass whose real shares are there."""
    share, last, target, jobs = work.share, work.last, work.target, work.jobs
    root = work.nodes[0]
    root.target = round(root.share)
    for node in work.nodes:
        children, members = node.children, node.jobs
        if not children and not members:
            continue
        shares, before = [share[index] for index in members], [last[index] for index in members]
        is_one = goes_by_speedup(work, members)
        if is_one:
            shares, before = [sum(shares)], [sum(before)]
        if children:
            shares = [child.share for child in children] + shares
            before = [child.last for child in children] + before
        floors = [int(part + SLACK) for part in shares]
        missing = node.target - node.fixed - sum(floors)
        if missing > 0:
            _raise_some(floors, missing, shares, before, _ties(children, members, jobs))
        for child, whole in zip(children, floors, strict=False):
            child.target = whole
        if is_one:
            floors[-1:] = _division(work, members, floors[-1])
        for position, index in enumerate(members, len(children)):
            target[index] = floors[position]


def goes_by_speedup(work: Work, members: Sequence[int]) -> bool:
    """Whether the jobs of one owner divide what they have together by what they gain."""
    return work.has_speedups and any(work.jobs[index].speedup for index in members)


def quantized(work: Work) -> dict[int, int]:
    """What jobs can use of their real shares, where not every number of workers is one to run with.

    All jobs are in it that divide by speed-up with such a job.
    """
    sizes: dict[int, int] = {}
    for node in work.nodes:
        stepwise = [index for index in node.jobs if work.jobs[index].allowed is not None]
        if not stepwise:
            continue
        if goes_by_speedup(work, node.jobs):
            total = int(sum([work.share[index] for index in node.jobs]) + SLACK)
            sizes.update(zip(node.jobs, _division(work, node.jobs, total), strict=True))
        else:
            sizes.update((i, usable(work.jobs[i], int(work.share[i] + SLACK))) for i in stepwise)
    return sizes


def _ties(children: Sequence[Node], members: Sequence[int], jobs: Sequence[Job]) -> Callable[[int], Tie]:
    """What decides between equals, by position: owners by name, then jobs by submit time."""
    count = len(children)

    def tie(position: int) -> Tie:
        if position < count:
            return -inf, children[position].name
        job = jobs[members[position - count]]
        return job.submitted, job.id

    return tie


def _raise_some(
    floors: list[int], missing: int, shares: Sequence[float], before: Sequence[int], tie: Callable[[int], Tie]
) -> None:
    """Raise `missing` of the floors by one: of those who had more before, then of the furthest behind."""
    broken = [position for position, part in enumerate(shares) if part - floors[position] > SLACK]
    keeping = [position for position in broken if before[position] > floors[position]]
    if len(keeping) != missing:
        broken.sort(
            key=lambda position: (
                before[position] <= floors[position],
                round(before[position] - shares[position], 6),
                tie(position),
            )
        )
        keeping = broken[:missing]
    for position in keeping:
        floors[position] += 1


def _division(work: Work, members: Sequence[int], total: int) -> list[int]:
    return best_division(
        total,
        [work.jobs[index] for index in members],
        [work.low[index] for index in members],
        [work.high[index] for index in members],
    )


def top_up(work: Work, members: Sequence[int], claims: Mapping[str, int]) -> None:
    """Give out what no share has taken, a step to each job in turn, as long as somebody can use it.

    Of one tier first whoever is below its share, of those who holds more already, then the furthest below.
    Who holds what this has given gets the same again: whoever got nothing of a turn finds no more room when
    those that did go before it.

    Args:
        work: the decision; jobs without a target have what is kept for them.
        members: jobs that may get more.
        claims: GPUs that stay free for owners, by their names.
    """
    behind = [index for index in members if 0 < work.target[index] < work.high[index]]
    if not behind:
        return
    taken = {node.name: node.unlent for node in work.nodes}
    for home, target, kept in zip(work.homes, work.target, work.kept, strict=True):
        taken[home.name] += target or kept
    room = Room(work, taken, claims)

    def rank(index: int) -> tuple[int, bool, bool, float, Tie]:
        job: Job = work.jobs[index]
        beyond = round(work.target[index] - work.share[index], 6)
        return -job.tier, beyond >= 0, work.last[index] <= work.target[index], beyond, (job.submitted, job.id)

    while behind:
        served = []
        for index in sorted(behind, key=rank):
            size = next_usable(work.jobs[index], work.target[index])
            if size is not None and room.lacking(index, size - work.target[index]) is None:
                room.take(index, size - work.target[index])
                work.target[index] = size
                served.append(index)
        behind = served
