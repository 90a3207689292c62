"""How much faster a job gets with more workers, and who of one owner's jobs gains most.

The measured points (workers, speed) are replaced by their concave hull through the origin, linear where
nothing was measured. Maximising the weighted sum of log(speed) gives every job its proportionally fair part
(Kelly, 1998); with concave curves one GPU after the other to whoever gains most is optimal (Fox, 1966). It is
used inside one owner only: nobody else's share depends on what a job claims.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from math import inf, log

from edt_launch.allocator.model import Job

Points = tuple[tuple[float, float], ...]


def hull(points: Sequence[tuple[int, float]]) -> Points:
    """Upper concave hull of the points and the origin; nobody is taken to get slower with more workers."""
    corners: list[tuple[float, float]] = [(0.0, 0.0)]
    for count, speed in sorted(points):
        if count <= 0 or speed <= 0:
            continue
        point = (float(count), max(float(speed), corners[-1][1]))
        while len(corners) > 1 and _slope(corners[-2], corners[-1]) <= _slope(corners[-2], point):
            corners.pop()
        corners.append(point)
    return tuple(corners)


def speed(curve: Points, count: float) -> float:
    """Speed with `count` workers: along the hull, its last piece going on."""
    if len(curve) < 2:
        return count
    position = min(max(1, bisect_left(curve, (count, -inf))), len(curve) - 1)
    left, right = curve[position - 1], curve[position]
    slope = _slope(left, right)
    if count > right[0]:
        return right[1] + slope * (count - right[0])
    return left[1] + slope * (count - left[0])


def gain(job: Job, before: int, after: int) -> float:
    """By how much of its speed a job gets faster: 1.0 for twice as fast."""
    if before <= 0:
        return inf
    if not job.speedup:
        return after / before - 1
    curve = hull(job.speedup)
    return speed(curve, after) / speed(curve, before) - 1


def best_division(
    total: int,
    jobs: Sequence[Job],
    lows: Sequence[int],
    highs: Sequence[int],
    following: Callable[[int, int], int | None],
) -> list[int]:
    """Sizes that sum to `total`, or what can be used of it, with the largest sum of weight x log(speed).

    Args:
        total: GPUs.
        jobs: who gets them.
        lows, highs: fewest and most of each.
        following: the next larger size of the job at a position, None if there is none.
    """
    sizes = list(lows)
    left = total - sum(sizes)
    curves = [hull(job.speedup) for job in jobs]

    def entry(position: int) -> tuple[float, float, str, int, int] | None:
        size, job = sizes[position], jobs[position]
        bigger = following(position, size)
        if bigger is None or bigger > highs[position]:
            return None
        now, then = speed(curves[position], size), speed(curves[position], bigger)
        worth = job.weight * (log(then) - log(now)) / (bigger - size) if now > 0 else inf
        return -round(worth, 12), job.submitted, job.id, position, bigger

    heap = [item for item in map(entry, range(len(jobs))) if item]
    heapify(heap)
    while heap and left > 0:
        *_, position, bigger = heappop(heap)
        step = bigger - sizes[position]
        if step > left:
            continue
        sizes[position] = bigger
        left -= step
        if (item := entry(position)) is not None:
            heappush(heap, item)
    return sizes


def _slope(left: tuple[float, float], right: tuple[float, float]) -> float:
    return (right[1] - left[1]) / (right[0] - left[0])
