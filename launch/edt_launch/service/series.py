"""A job's progress as a few numbers over time: a pure fold that never grows beyond a bound."""

from dataclasses import dataclass, field
from itertools import pairwise
from math import isfinite
from typing import Any

from edt_launch.core.events import Progress

MOST = 1000
"""Points that are kept; from twice as many, every other one is dropped."""


@dataclass(frozen=True)
class Point:
    """A report of progress, without what else a script reports, which may be much."""

    time: float
    step: int
    size: int
    loss: float | None


@dataclass
class Series:
    """Reports of progress, thinned out evenly."""

    points: list[Point] = field(default_factory=list)
    _stride: int = 1
    _seen: int = 0

    def observe(self, report: Progress) -> None:
        """Take in a report."""
        if self._seen % self._stride == 0:
            self.points.append(Point(report.time, report.step, report.size, report.number("loss")))
            if len(self.points) >= 2 * MOST:
                del self.points[1::2]
                self._stride *= 2
        self._seen += 1

    def columns(self) -> dict[str, list[Any]]:
        """The points, as a list for each field; throughput is steps a second since the point before."""
        columns: dict[str, list[Any]] = {
            name: [getattr(point, name) for point in self.points] for name in ("time", "step", "size", "loss")
        }
        speeds = [None, *(_speed(before, after) for before, after in pairwise(self.points))]
        return {**columns, "throughput": speeds[: len(self.points)]}


def number(value: Any) -> float | None:
    """A number that JSON can say; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if isfinite(value) else None
    except OverflowError:  # an integer beyond all floats
        return None


def _speed(before: Point, after: Point) -> float | None:
    steps, seconds = after.step - before.step, after.time - before.time
    return steps / seconds if before.size == after.size and steps > 0 and seconds > 0 else None
