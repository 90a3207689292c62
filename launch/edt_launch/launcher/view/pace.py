"""How fast a job is and when it will be done, whatever has happened to its size."""

from collections.abc import Sequence
from itertools import pairwise

from edt_launch.core.history.job_history import Mark

WINDOW = 30.0
"""Seconds of training at the present size that count for its pace."""

SETTLED_STEPS = 3
"""Optimizer steps after which the pace at a new size is measured rather than foretold."""


def rate(history: Sequence[Mark]) -> float | None:
    """Optimizer steps per second to be expected at the present size; None while nothing is known.

    Measured over the last `WINDOW` seconds at that size. While those are fewer than `SETTLED_STEPS` steps, it
    is foretold from the size before, in proportion. Pauses between two worlds and steps that are done again
    do not count. The oldest report comes first.
    """
    if not history:
        return None
    size = history[-1].size
    steps, seconds = _measure(history, size)
    if steps >= SETTLED_STEPS:
        return steps / seconds
    for other in dict.fromkeys(mark.size for mark in reversed(history)):
        other_steps, other_seconds = _measure(history, other)
        if other != size and other_steps >= SETTLED_STEPS:
            return other_steps / other_seconds * size / other
    return steps / seconds if steps else None


def remaining(now: float, history: Sequence[Mark], total: int | None) -> float | None:
    """Seconds until step `total` is done; None while nothing is known.

    Between two reports it counts down, for as long as a report took last; in a pause it stands still.
    """
    pace = rate(history)
    if total is None or not pace:
        return None
    last = history[-1]
    intervals = _intervals(history)
    usual_gap = intervals[-1][1].time - intervals[-1][0].time if intervals else 0.0
    since = min(max(now - last.time, 0.0), usual_gap)
    return max((total - last.step) / pace - since, 0.0)


def _intervals(history: Sequence[Mark]) -> list[tuple[Mark, Mark]]:
    """Pairs of neighbours between which there was nothing but training forward."""
    return [
        (a, b)
        for a, b in pairwise(history)
        if a.size == b.size and a.generation == b.generation and b.step > a.step and b.time > a.time
    ]


def _measure(history: Sequence[Mark], size: int) -> tuple[int, float]:
    steps, seconds = 0, 0.0
    for a, b in reversed(_intervals(history)):
        if a.size == size and seconds < WINDOW:
            steps += b.step - a.step
            seconds += b.time - a.time
    return steps, seconds
