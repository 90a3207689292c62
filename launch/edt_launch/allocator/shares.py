"""Real shares, top down: each node divides what it has among its children.

A child's share lies between what the admitted jobs below it need at least, or its owner's guarantee where it
is asked for, and what they can use at most, or a limit; between these, shares are proportional to weights
(see `filling`). Nobody gains by splitting a job or by asking for more than it can get: what an owner has
depends on the sums below it alone.
"""

from collections.abc import Callable, Sequence
from itertools import groupby
from math import inf

import numpy as np

from edt_launch.allocator.filling import SLACK, Bools, Floats, Ints, divide, fill
from edt_launch.allocator.model import Policy
from edt_launch.allocator.tree import Layer, TreeNode
from edt_launch.allocator.work import Work

Weigh = Callable[[Layer, Floats, Bools], Floats]
"""(layer, what each node divides, whether it does so by weight) -> weights of its children and jobs."""


def sum_up(work: Work, tier: int, members: Sequence[int]) -> None:
    """Bounds of every node for a pass over the jobs `members` of one tier, which are all in."""
    lower = fix_other_tiers(work, tier)
    homes = work.homes
    for index in members:
        homes[index].jobs.append(index)
    work.layers = _layers(work)
    lows, highs, lasts = (work.sums(values, members) for values in (work.low, work.high, work.last))
    for node in reversed(work.nodes):
        least = node.fixed + lows[node.position]
        most = float(node.fixed + highs[node.position])
        own = node.fixed + lasts[node.position]
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


def _layers(work: Work) -> list[Layer]:
    """Who divides what among whom in the pass, from the root down."""
    members = np.array([index for node in work.nodes for index in node.jobs], dtype=np.int64)
    homes = work.positions[members]
    layers, nodes = list[Layer](), work.nodes[:1]
    while nodes:
        children = [child for node in nodes for child in node.children]
        above = np.array([node.position for node in nodes for _ in node.children], dtype=np.int64)
        first, last = nodes[0].position, nodes[-1].position
        is_here = (first <= homes) & (homes <= last)
        parents = np.concatenate([above, homes[is_here]])
        if len(parents):
            layers.append(Layer(nodes, slice(first, last + 1), children, members[is_here], parents))
        nodes = children
    return layers


def fix_other_tiers(work: Work, tier: int) -> dict[str, tuple[int, int]]:
    """Empty the nodes for a pass over one tier, and fix what it may not move.

    Returns:
        What lower tiers could use, and have, beyond what they keep, by the names of nodes with a guarantee.
    """
    lower: dict[str, tuple[int, int]] = {}
    for node in work.nodes:
        node.jobs = []
        node.fixed = node.withheld
    for other, members in work.tiers:
        if other == tier:
            continue
        for index in members:
            fixed = work.target[index] if other > tier else work.reserved[index]
            work.homes[index].fixed += fixed
            if other < tier and fixed:
                for node in work.homes[index].path:
                    if node.guarantee:
                        wanted, held = lower.get(node.name, (0, 0))
                        held += max(0, work.last[index] - fixed)
                        lower[node.name] = wanted + work.high[index] - fixed, held
    return lower


def entries_below(parents: Ints, positions: Ints) -> list[Ints]:
    """Indices in `parents`, as in those of a layer, of what is right below each of some nodes."""
    if not len(positions):
        return []
    order = np.argsort(parents, kind="stable")
    begins, ends = (np.searchsorted(parents[order], positions, side) for side in ("left", "right"))
    return [order[begin:end] for begin, end in zip(begins, ends, strict=True)]


def pour(work: Work, weigh: Weigh) -> None:
    """Fill in the real share of every node and job of the pass that `sum_up` has prepared."""
    low, high, share = (np.array(values, dtype=np.float64) for values in (work.low, work.high, work.share))
    is_fair = np.array([node.policy is Policy.FAIR for node in work.nodes])
    root, count = work.nodes[0], len(work.nodes)
    root.share = min(root.limit, root.high)
    for layer in work.layers:
        children, jobs, parents = layer.children, layer.jobs, layer.parents
        lows = np.concatenate([[child.low for child in children], low[jobs]])
        highs = np.concatenate([[child.high for child in children], high[jobs]])
        totals = np.zeros(count)
        totals[layer.span] = [node.share - node.fixed for node in layer.nodes]
        least, most = np.bincount(parents, lows, count), np.bincount(parents, highs, count)
        is_full = totals >= most - SLACK / 2
        is_between = ~is_full & (totals > least + SLACK / 2)
        is_squeezed = ~is_full & (totals < least - SLACK / 2)
        parts = np.where(is_full[parents], highs, lows)
        if (by_weight := is_between & is_fair).any():
            weights = weigh(layer, totals, by_weight)
            parts = np.where(by_weight[parents], divide(totals, parents, weights, lows, highs), parts)
        others = np.flatnonzero(is_squeezed | is_between & ~is_fair)
        for position, own in zip(others, entries_below(parents, others), strict=True):
            node, total = work.nodes[position], float(totals[position])
            bounds = lows[own].tolist(), highs[own].tolist()
            if is_squeezed[position]:
                parts[own] = _squeeze(total, node, bounds[0], work.low)
            else:
                parts[own] = _in_order(total, _order(work, node), *bounds)
        share[jobs] = parts[len(children) :]
        for child, part in zip(children, parts.tolist(), strict=False):
            child.share = part
    work.share = share.tolist()


def plain(work: Work) -> Weigh:
    """Weights as they were given."""
    of_jobs = np.array([job.weight for job in work.jobs], dtype=np.float64)

    def weigh(layer: Layer, totals: Floats, is_divided: Bools) -> Floats:
        return np.concatenate([[child.weight for child in layer.children], of_jobs[layer.jobs]])

    return weigh


def _squeeze(total: float, node: TreeNode, lows: Sequence[float], low: Sequence[int]) -> list[float]:
    """More is guaranteed than there is: minimums first, then in proportion to the rest of the guarantees."""
    least = [float(child.least) for child in node.children] + [float(low[index]) for index in node.jobs]
    beyond = [guaranteed - need or 1.0 for guaranteed, need in zip(lows, least, strict=True)]
    return fill(total, beyond, least, lows)


def _order(work: Work, node: TreeNode) -> list[list[int]]:
    """Positions of the node's children in the order in which they are served; those of one list share."""
    if node.policy is Policy.FIFO:
        submitted = [_first(work, child) for child in node.children]
        submitted += [(work.jobs[index].submitted, work.jobs[index].id) for index in node.jobs]
        return [[position] for position in sorted(range(len(submitted)), key=submitted.__getitem__)]
    weights = [child.weight for child in node.children] + [work.jobs[index].weight for index in node.jobs]
    heaviest_first = sorted(range(len(weights)), key=lambda position: -weights[position])
    return [[*positions] for _, positions in groupby(heaviest_first, key=weights.__getitem__)]


def _first(work: Work, node: TreeNode) -> tuple[float, str]:
    times, nodes = list[float](), [node]
    while nodes:
        below = nodes.pop()
        times += [work.jobs[index].submitted for index in below.jobs]
        nodes += below.children
    return min(times, default=inf), node.name


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
