"""How many workers a job makes use of, from the speeds that were measured with some numbers of them.

More workers can make a job slower, on a second host for instance. So it is offered no more than the smallest
number than which no larger one was measured to be faster. Numbers that were not measured may be better: as
long as the next larger measured one is more than twice as large, half of that may be tried.
"""

from collections.abc import Sequence

Point = tuple[int, float]
"""Workers, and the speed with them."""

UNCERTAINTY = 0.02
"""Part by which measured speeds have to differ for one to be the faster: less is an error of measurement."""


def useful(points: Sequence[Point], most: int) -> int:
    """Most workers, up to `most`, that a job is offered."""
    found = peak(points, most)
    if found is None:
        return most
    (best, _), (larger, _) = found
    return max(best, larger // 2)


def peak(points: Sequence[Point], most: int) -> tuple[Point, Point] | None:
    """The smallest number up to `most` than which no larger one is faster, and the next larger one.

    None if no larger one was measured.
    """
    known = sorted(point for point in points if point[0] <= most)
    if not known:
        return None
    least = max([speed for _, speed in known]) * (1 - UNCERTAINTY)
    place = next(place for place, (_, speed) in enumerate(known) if speed >= least)
    return (known[place], known[place + 1]) if place + 1 < len(known) else None
