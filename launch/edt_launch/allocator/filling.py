"""Weighted max-min fair division between bounds, by water-filling.

Everybody gets `clamp(level * weight, low, high)` with the one level at which the sum is what there is
(Bertsekas and Gallager, Data Networks, section 6.5.2, with weights and bounds). The level is found exactly,
in rounds: divide as if nobody were bound; when the shares, cut to their bounds, sum to more than there is,
the level has to fall, and whoever is at its lower bound stays there; when they sum to less, whoever is at its
upper bound does. Each round settles somebody for good, most of them many.
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
    free = list(zip(weights, lows, highs, strict=True))
    left, level = total, 0.0
    while free:
        level = left / sum([weight for weight, _, _ in free])
        too_low = [item for item in free if level * item[0] < item[1]]
        too_high = [item for item in free if level * item[0] > item[2]]
        if not too_low and not too_high:
            break
        lacking = sum([low - level * weight for weight, low, _ in too_low])
        beyond = sum([level * weight - high for weight, _, high in too_high])
        if lacking >= beyond:
            left -= sum([low for _, low, _ in too_low])
        if beyond >= lacking:
            left -= sum([high for _, _, high in too_high])
        free = [
            item
            for item in free
            if not (lacking >= beyond and level * item[0] < item[1])
            and not (beyond >= lacking and level * item[0] > item[2])
        ]
    return level
