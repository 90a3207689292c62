"""Whole numbers from real shares, with an error below one GPU at every node of the tree at once.

The children of a node are rounded given the node's own whole number, which is the floor or the ceiling of its
real share: exactly as many children get their ceiling as it takes. As the floors of the parts never exceed
the floor of the sum, nor the ceilings fall below its ceiling, this always works out, and every node is the
floor or the ceiling of its share (controlled rounding on a tree; Cox, 1987).
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf

import numpy as np

from edt_launch.allocator.filling import SLACK, Floats, Ints
from edt_launch.allocator.model import Job
from edt_launch.allocator.shares import entries_below
from edt_launch.allocator.speedup import best_division
from edt_launch.allocator.tree import TreeNode
from edt_launch.allocator.work import Room, Work

Tie = tuple[float, str]


def round_down_the_tree(work: Work) -> None:
    """Fill in the whole number of every node and job of the pass whose real shares are there."""
    share, last = np.array(work.share), np.array(work.last, dtype=np.float64)
    target = np.array(work.target, dtype=np.int64)
    work.nodes[0].target = round(work.nodes[0].share)
    for layer in work.layers:
        # What a node has is rounded in parts: its children, and its jobs, each of them or all together.
        children, homes = layer.children, layer.parents[len(layer.children) :]
        together = [node for node in layer.nodes if goes_by_speedup(work, node.jobs)]
        positions = np.array([node.position for node in together], dtype=np.int64)
        is_apart = np.ones(len(work.nodes), dtype=np.bool_)
        is_apart[positions] = False
        is_alone, count = is_apart[homes], len(children)
        jobs = layer.jobs[is_alone]
        parents = np.concatenate([layer.parents[:count], positions, homes[is_alone]])
        sums = ([figures[node.jobs].sum() for node in together] for figures in (share, last))
        shares = np.concatenate([[child.share for child in children], next(sums), share[jobs]])
        before = np.concatenate([[child.last for child in children], next(sums), last[jobs]])
        totals = np.zeros(len(work.nodes), dtype=np.int64)
        totals[layer.span] = [node.target - node.fixed for node in layer.nodes]
        first = [node.jobs[0] for node in together] + jobs.tolist()
        whole = _rounded(totals, parents, shares, before, _ties(children, first, work.jobs))
        for child, number in zip(children, whole, strict=False):
            child.target = number
        for node, number in zip(together, whole[count:], strict=False):
            target[node.jobs] = _division(work, node.jobs, number)
        target[jobs] = whole[count + len(together) :]
    work.target = target.tolist()


def goes_by_speedup(work: Work, members: Sequence[int]) -> bool:
    """Whether the jobs of one owner divide what they have together by what they gain."""
    return work.has_speedups and any(work.jobs[index].speedup for index in members)


def quantized(work: Work) -> dict[int, int]:
    """What jobs can use of their real shares, where not every number of workers is offered to them.

    All jobs are in it that divide by speed-up with such a job.
    """
    sizes: dict[int, int] = {}
    for node in work.nodes:
        stepwise = [i for i in node.jobs if i in work.gaps or work.jobs[i].allowed is not None]
        if not stepwise:
            continue
        if goes_by_speedup(work, node.jobs):
            total = int(sum([work.share[index] for index in node.jobs]) + SLACK)
            sizes.update(zip(node.jobs, _division(work, node.jobs, total), strict=True))
        else:
            sizes.update((i, work.offered(i, int(work.share[i] + SLACK))) for i in stepwise)
    return sizes


def _ties(children: Sequence[TreeNode], members: Sequence[int], jobs: Sequence[Job]) -> Callable[[int], Tie]:
    """What decides between equals, by position: owners by name, then jobs by submit time."""
    count = len(children)

    def tie(at: int) -> Tie:
        if at < count:
            return -inf, children[at].name
        job = jobs[members[at - count]]
        return job.submitted, job.id

    return tie


def _rounded(
    totals: Ints, parents: Ints, shares: Floats, before: Floats, tie: Callable[[int], Tie]
) -> list[int]:
    """Floors of the shares, as many of each parent's raised by one as its total takes.

    Raised are those who had more before, then those furthest behind.
    """
    floors = np.floor(shares + SLACK)
    is_broken = shares - floors > SLACK
    is_kept = is_broken & (before > floors)
    missing = totals - np.bincount(parents, floors, len(totals))
    is_exact = np.bincount(parents, is_kept, len(totals)) == missing
    is_raised = is_kept & is_exact[parents]
    behind = np.round(before - shares, 6)
    unclear = np.flatnonzero((missing > 0) & ~is_exact)
    for position, own in zip(unclear, entries_below(parents, unclear), strict=True):
        broken = own[is_broken[own]].tolist()
        broken.sort(key=lambda at: (not is_kept[at], behind[at], tie(at)))
        is_raised[broken[: int(missing[position])]] = True
    whole: list[int] = (floors + is_raised).astype(np.int64).tolist()
    return whole


def _division(work: Work, members: Sequence[int], total: int) -> list[int]:
    return best_division(
        total,
        [work.jobs[index] for index in members],
        [work.low[index] for index in members],
        [work.high[index] for index in members],
        lambda position, size: work.next_offered(members[position], size),
    )


def top_up(work: Work, members: Sequence[int], claims: Mapping[str, int]) -> None:
    """Give out what no share has taken, a step to each job in turn, as long as somebody can use it.

    Of one tier those below their shares come first; then those that the last decision gave more, which so
    keep what this gave them then; then those furthest below their shares.

    Args:
        work: the decision; jobs without a target have what is kept for them.
        members: jobs that may get more.
        claims: GPUs that stay free for owners, by their names.
    """
    behind = [index for index in members if 0 < work.target[index] < work.high[index]]
    if not behind:
        return
    own = work.sums([target or reserved for target, reserved in zip(work.target, work.reserved, strict=True)])
    room = Room(work, [node.withheld + own[node.position] for node in work.nodes], claims)

    def rank(index: int) -> tuple[int, bool, bool, float, Tie]:
        job: Job = work.jobs[index]
        beyond = round(work.target[index] - work.share[index], 6)
        return -job.tier, beyond >= 0, work.last[index] <= work.target[index], beyond, (job.submitted, job.id)

    while behind:
        served = []
        for index in sorted(behind, key=rank):
            size = work.next_offered(index, work.target[index])
            if size is not None and room.lacking(index, size - work.target[index]) is None:
                room.take(index, size - work.target[index])
                work.target[index] = size
                served.append(index)
        behind = served
