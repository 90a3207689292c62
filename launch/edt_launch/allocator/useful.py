"""How many workers a job makes use of, from the speeds that were measured with some numbers of them.

More workers can make a job slower, on a second host for instance. So it is offered the fewest that were as
fast as any. Numbers between these and the next larger measured one may be better: half of the larger one is
tried while that leaves more than the fewest. Of a job that can run with some numbers only, the next one is
tried, too, if it is twice the fewest or more.

A job may be slower with some workers more, and faster with many more: what is between is left out.
"""

from collections.abc import Sequence
from itertools import pairwise

Point = tuple[int, float]
"""Workers, and the speed with them."""

UNCERTAINTY = 0.02
"""Part by which measured speeds have to differ for one to be the faster: less is an error of measurement."""


def useful(points: Sequence[Point], most: int, allowed: Sequence[int] | None = None) -> int:
    """Most workers, up to `most`, that a job is offered; `allowed`: the numbers that it can run with."""
    found = peak(points, most)
    if found is None:
        return most
    (best, _), (larger, _) = found
    if allowed is None:
        return max(best, larger // 2)
    between = [number for number in allowed if best < number < larger]
    untried = [number for number in between if number <= larger // 2] or [
        number for number in between[:1] if number >= 2 * best
    ]
    return max(untried, default=best)


def gaps(points: Sequence[Point], most: int, allowed: Sequence[int] | None = None) -> list[tuple[int, int]]:
    """Pairs of numbers, ascending, between which a job is offered none.

    For each measured number below `most` that fewer were as fast as: what is offered instead, and the first
    number beyond it that is faster, as measured or on the line between two measured numbers. If 4 workers are
    twice as fast as 6, and half as fast as 12, that is none between 4 and 9.
    """
    pairs = list[tuple[int, int]]()
    for point, following in pairwise(sorted(points)):
        least = useful(points, point[0], allowed)
        if least < point[0] < most:
            best = max([speed for count, speed in points if count <= point[0]])
            pairs.append((least, _first_above(best / (1 - UNCERTAINTY), point, following)))
    return pairs


def _first_above(speed: float, left: Point, right: Point) -> int:
    """The first number on the line between two points that is faster; the second point's if none is."""
    if right[1] <= speed:
        return right[0]
    part = (speed - left[1]) / (right[1] - left[1])
    return min(right[0], left[0] + int(part * (right[0] - left[0])) + 1)


def gain_by_shrinking(points: Sequence[Point], size: int) -> float:
    """By how much of its speed a job with a number of workers would be faster with fewer, as measured.

    0 while that number was not measured, and for differences that count as none.
    """
    speeds = {count: speed for count, speed in points if count <= size}
    best = max(speeds.values(), default=0.0)
    own = speeds.get(size, best)
    return best / own - 1 if own < best * (1 - UNCERTAINTY) else 0.0


def peak(points: Sequence[Point], most: int) -> tuple[Point, Point] | None:
    """The fewest workers up to `most` that were as fast as any, and the next larger measured number.

    None if no larger one was measured.
    """
    known = sorted(point for point in points if point[0] <= most)
    if not known:
        return None
    least = max([speed for _, speed in known]) * (1 - UNCERTAINTY)
    at = next(at for at, (_, speed) in enumerate(known) if speed >= least)
    return (known[at], known[at + 1]) if at + 1 < len(known) else None
