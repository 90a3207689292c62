"""Weighted max-min fair division between bounds, by water-filling.

Everybody gets `clamp(level * weight, low, high)` with the one level at which the sum is what there is
(Bertsekas and Gallager, Data Networks, section 6.5.2, with weights and bounds). As a function of the level
the sum is a rising line that bends where somebody leaves its lower bound or comes to its upper one. The level
is found exactly, by going along the bends in their order.
"""

from collections.abc import Sequence

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
    return divide(total, weights, lows, highs)


def divide(
    total: float, weights: Sequence[float], lows: Sequence[float], highs: Sequence[float]
) -> list[float]:
    """The same, for a total between the sums of the bounds."""
    level = _level(total, weights, lows, highs)
    return [
        low if (due := level * weight) < low else high if due > high else due
        for weight, low, high in zip(weights, lows, highs, strict=True)
    ]


def _level(total: float, weights: Sequence[float], lows: Sequence[float], highs: Sequence[float]) -> float:
    """The level at which the shares sum to `total`, which lies between the sums of the bounds."""
    bends = [low / weight for low, weight in zip(lows, weights, strict=True)]
    bends += [high / weight for high, weight in zip(highs, weights, strict=True)]
    base, slope, passed = sum(lows), 0.0, 0.0  # below a bend the shares sum to base + slope * level
    count = len(weights)
    for position in sorted(range(2 * count), key=bends.__getitem__):
        bend = bends[position]
        if base + slope * bend >= total:
            return min(max((total - base) / slope, passed), bend) if slope > 0 else bend
        if position < count:
            base, slope = base - lows[position], slope + weights[position]
        else:
            base, slope = base + highs[position - count], slope - weights[position - count]
        passed = bend
    return passed
