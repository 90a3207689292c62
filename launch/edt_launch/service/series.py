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
            self._add(Point(report.time, report.step, report.size, report.number("loss")))
        self._seen += 1

    def _add(self, point: Point) -> None:
        self.points.append(point)
        if len(self.points) >= 2 * MOST:
            del self.points[1::2]
            self._stride *= 2

    def columns(self) -> dict[str, list[Any]]:
        """The points, as a list for each field; throughput is steps a second since the point before."""
        speeds = [None, *(_speed(a, b) for a, b in pairwise(self.points))]
        return {
            "time": [point.time for point in self.points],
            "step": [point.step for point in self.points],
            "size": [point.size for point in self.points],
            "loss": [point.loss for point in self.points],
            "throughput": speeds[: len(self.points)],
        }


def number(value: Any) -> float | None:
    """A number that JSON can say; None for anything else."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and isfinite(value) else None


def _speed(before: Point, after: Point) -> float | None:
    steps, seconds = after.step - before.step, after.time - before.time
    return steps / seconds if before.size == after.size and steps > 0 and seconds > 0 else None
