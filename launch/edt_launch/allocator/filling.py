"""Weighted max-min fair division between bounds, by water-filling.

Everybody gets `clamp(level * weight, low, high)` with the one level at which the sum is what there is
(Bertsekas and Gallager, Data Networks, section 6.5.2, with weights and bounds). As a function of the level
the sum is a rising line that bends where somebody leaves its lower bound or comes to its upper one. The level
is found exactly, by going along the bends in their order, of many divisions at once.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SLACK = 1e-6
"""Real shares closer than this to a whole number are that number."""


def fill(
    total: float, weights: Sequence[float], lows: Sequence[float], highs: Sequence[float]
) -> list[float]:
    """Shares of `total`, each between its bounds; all highs when there is enough, all lows when there is not.

    Args:
        total: what there is.
        weights: above 0, of any scale.
        lows: lower bounds.
        highs: upper bounds, none below its lower bound.
    """
    if total >= sum(highs) - SLACK / 2:
        return list(highs)
    if total <= sum(lows) + SLACK / 2:
        return list(lows)
    groups = np.zeros(len(weights), dtype=np.int64)
    bounds = np.array(lows, dtype=np.float64), np.array(highs, dtype=np.float64)
    shares: list[float] = divide(np.array([total]), groups, np.array(weights), *bounds).tolist()
    return shares


def divide(totals: Floats, groups: Ints, weights: Floats, lows: Floats, highs: Floats) -> Floats:
    """Shares of several totals, each of which lies between the sums of the bounds of its group.

    Args:
        totals: what there is for each group.
        groups: which of them everybody belongs to; some may be empty.
        weights, lows, highs: of everybody, as for `fill`.
    """
    due = _levels(totals, groups, weights, lows, highs)[groups] * weights
    return np.minimum(np.maximum(due, lows), highs)


def _levels(totals: Floats, groups: Ints, weights: Floats, lows: Floats, highs: Floats) -> Floats:
    """The level of each group at which its shares sum to its total; 0 of empty ones."""
    bends = np.concatenate([lows / weights, highs / weights])
    owners = np.concatenate([groups, groups])
    order = np.lexsort((bends, owners))
    bends, owners = bends[order], owners[order]
    counts = np.bincount(owners)
    known = np.flatnonzero(counts)
    counts = counts[known]
    last = np.cumsum(counts) - 1
    first = last - counts + 1
    # Below a bend the shares of its group sum to base + slope * level.
    base = _before(np.concatenate([-lows, highs])[order], first, counts)
    base += np.bincount(groups, lows, len(totals))[owners]
    slope = _before(np.concatenate([weights, -weights])[order], first, counts)
    is_below = base + slope * bends < totals[owners]
    at = np.minimum(first + np.bincount(owners, is_below)[known].astype(np.int64), last)
    bend, passed = bends[at], np.where(at > first, bends[at - 1], 0.0)
    is_rising = slope[at] > 0
    exact = (totals[known] - base[at]) / np.where(is_rising, slope[at], 1.0)
    levels = np.zeros(len(totals))
    levels[known] = np.where(is_rising, np.minimum(np.maximum(exact, passed), bend), bend)
    return levels


def _before(steps: Floats, first: Ints, counts: Ints) -> Floats:
    """Sums of the steps before each one, in each part of them that begins at one of `first`."""
    sums = np.cumsum(steps) - steps
    return sums - np.repeat(sums[first], counts)
