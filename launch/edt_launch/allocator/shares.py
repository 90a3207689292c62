"""Real shares, top down: each node divides what it has among its children.

A child's share lies between what the admitted jobs below it need at least, or its owner's guarantee where it
is asked for, and what they can use at most, or a limit; between these, shares are proportional to weights
(see `filling`). Nobody gains by splitting a job or by asking for more than it can get: what an owner has
depends on the sums below it alone.
"""

from collections.abc import Callable, Sequence

from edt_launch.allocator.filling import SLACK, divide, fill
from edt_launch.allocator.model import Policy
from edt_launch.allocator.tree import Node
from edt_launch.allocator.work import Work

Weigh = Callable[[Node, float, list[Node], list[int]], list[float]]
"""(node, what its children share, owners, jobs) -> their weights."""


def sum_up(work: Work, tier: int, members: Sequence[int]) -> None:
    """Bounds of every node for a pass over the jobs `members` of one tier, which are all in."""
    nodes, low, high, last = work.nodes, work.low, work.high, work.last
    lower = hold_back(work, tier)
    homes = work.homes
    for index in members:
        homes[index].jobs.append(index)
    for node in reversed(nodes):
        jobs, least = node.jobs, node.fixed
        most, own = float(least), least
        if jobs:
            least += sum([low[index] for index in jobs])
            most += sum([high[index] for index in jobs])
            own += sum([last[index] for index in jobs])
        floor = float(least)
        for child in node.children:
            least += child.least
            floor += child.low
            most += child.high
            own += child.last
        if node.guarantee:
            wanted, kept = lower.get(node.name, (0, 0))
            asked = min(float(node.guarantee), most + wanted)
            floor, most = max(floor, asked), max(most, asked)
            own = max(own, min(node.guarantee, own + kept))
        node.least, node.last = least, own
        node.low = max(least, min(floor, node.limit))
        node.high = max(node.low, min(most, node.limit))


def hold_back(work: Work, tier: int) -> dict[str, tuple[int, int]]:
    """Empty the nodes for a pass over one tier, and fix what it may not move.

    Returns:
        What lower tiers could use, and have, beyond what they keep, by the names of nodes with a guarantee.
    """
    lower: dict[str, tuple[int, int]] = {}
    for node in work.nodes:
        node.jobs = []
        node.fixed = node.unlent
    for other, members in work.tiers:
        if other == tier:
            continue
        for index in members:
            fixed = work.target[index] if other > tier else work.kept[index]
            work.homes[index].fixed += fixed
            if other < tier and fixed:
                for node in work.homes[index].path:
                    if node.guarantee:
                        wanted, held = lower.get(node.name, (0, 0))
                        held += max(0, work.last[index] - fixed)
                        lower[node.name] = wanted + work.high[index] - fixed, held
    return lower


def pour(work: Work, weigh: Weigh) -> None:
    """Fill in the real share of every node and job of the pass that `sum_up` has prepared."""
    low, high, share = work.low, work.high, work.share
    root = work.nodes[0]
    root.share = min(root.limit, root.high)
    for node in work.nodes:
        children, jobs = node.children, node.jobs
        if not children and not jobs:
            continue
        total = node.share - node.fixed
        lows = [child.low for child in children] + [low[index] for index in jobs]
        highs = [child.high for child in children] + [high[index] for index in jobs]
        if total >= sum(highs) - SLACK / 2:
            shares: Sequence[float] = highs
        elif total <= (least := sum(lows)) + SLACK / 2:
            shares = lows if total >= least - SLACK / 2 else _squeeze(total, node, lows, low)
        elif node.policy is Policy.FAIR:
            shares = divide(total, weigh(node, total, children, jobs), lows, highs)
        else:
            shares = _in_order(total, _order(work, node), lows, highs)
        count = len(children)
        for child, part in zip(children, shares, strict=False):
            child.share = part
        for index, part in zip(jobs, shares[count:] if count else shares, strict=True):
            share[index] = part


def plain(work: Work) -> Weigh:
    """Weights as they were given."""

    def weigh(node: Node, total: float, children: list[Node], jobs: list[int]) -> list[float]:
        return [child.weight for child in children] + [work.jobs[index].weight for index in jobs]

    return weigh


def _squeeze(total: float, node: Node, lows: Sequence[float], low: Sequence[int]) -> list[float]:
    """More is guaranteed than there is: minimums first, then in proportion to the rest of the guarantees."""
    least = [float(child.least) for child in node.children] + [float(low[index]) for index in node.jobs]
    beyond = [guaranteed - need or 1.0 for guaranteed, need in zip(lows, least, strict=True)]
    return fill(total, beyond, least, lows)


def _order(work: Work, node: Node) -> list[list[int]]:
    """Positions of the node's children in the order in which they are served; those of one list share."""
    count = len(node.children)
    if node.policy is Policy.FIFO:
        submitted = [_first(work, child) for child in node.children]
        submitted += [(work.jobs[index].submitted, work.jobs[index].id) for index in node.jobs]
        return [[position] for position in sorted(range(len(submitted)), key=submitted.__getitem__)]
    weights = plain(work)(node, 0.0, node.children, node.jobs)
    return [
        [position for position in range(count + len(node.jobs)) if weights[position] == weight]
        for weight in sorted(set(weights), reverse=True)
    ]


def _first(work: Work, node: Node) -> tuple[float, str]:
    times = [work.jobs[index].submitted for index in node.jobs]
    times += [_first(work, child)[0] for child in node.children]
    return min(times, default=float("inf")), node.name


def _in_order(
    total: float, groups: Sequence[Sequence[int]], lows: Sequence[float], highs: Sequence[float]
) -> list[float]:
    shares = list(lows)
    left = total - sum(lows)
    for group in groups:
        parts = fill(
            left + sum(lows[position] for position in group),
            [1.0] * len(group),
            [lows[position] for position in group],
            [highs[position] for position in group],
        )
        for position, part in zip(group, parts, strict=True):
            left -= part - lows[position]
            shares[position] = part
    return shares
