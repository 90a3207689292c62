"""Weighted max-min fair division between bounds, by water-filling.

Everybody gets `clamp(level * weight, low, high)` with the one level at which the sum is what there is. The sum
is piecewise linear in the level, with a corner where somebody leaves its lower or reaches its upper bound; the
level is solved for exactly between the two corners that enclose it (Bertsekas and Gallager, Data Networks,
section 6.5.2, max-min flow control, with weights and bounds).
"""

from collections.abc import Sequence
from math import fsum, inf

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
    level = _level(total, weights, lows, highs)
    return [
        low if (due := level * weight) < low else high if due > high else due
        for weight, low, high in zip(weights, lows, highs, strict=True)
    ]


def _level(
    total: float, weights: Sequence[float], lows: Sequence[float], highs: Sequence[float]
) -> float:
    corners = [(low / weight, weight, -low) for weight, low in zip(weights, lows, strict=True)]
    corners += [(high / weight, -weight, high) for weight, high in zip(weights, highs, strict=True)]
    corners.sort()
    constant, slope, reached = float(sum(lows)), 0.0, 0.0
    for corner, turn, step in corners:
        if constant + slope * corner >= total:
            below, above = reached, corner
            break
        constant += step
        slope += turn
        reached = corner
    else:
        below, above = reached, inf
    # The running sums have lost digits: solve again with what is free between the two corners.
    middle = (below + above) / 2 if above < inf else below * 2 + 1
    free, bound = [], []
    for weight, low, high in zip(weights, lows, highs, strict=True):
        due = middle * weight
        if due <= low:
            bound.append(low)
        elif due >= high:
            bound.append(high)
        else:
            free.append(weight)
    return (total - fsum(bound)) / fsum(free) if free else middle
