"""A job's course as rows of numbers over time: a pure fold over its events that never grows beyond a bound.

Reports are thinned by buckets of as many reports each. Of each bucket the first stays, and for each value
the lowest, the highest and the first that is no finite number, so that spikes and gaps stay, too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite, isnan, nan
from typing import Any

from edt_launch.core.history.events import Event, Progress, Usage
from edt_launch.core.history.job_history import JobHistory, Summary

MAX_POINTS = 2000
"""Rows that are kept."""

MAX_PAUSES = 500
"""Pauses that are kept: the latest."""

SYSTEM: Mapping[str, tuple[str, float]] = {
    "system/processors": ("processors", 1),
    "system/memory GiB": ("memory", 2**30),
    "system/GPU %": ("gpus", 1),
    "system/GPU memory GiB": ("gpu_memory", 2**30),
    "system/GPU power W": ("gpu_power", 1),
}
"""Values that hosts measure: the field of a `Usage`, and by what it is divided."""

LOSS = "loss"
"""The value that is always kept."""


@dataclass(frozen=True)
class Point:
    """A report of progress; `training` is seconds without pauses.

    `values` are of the names asked for: None where there is none, NaN for what is no finite number.
    """

    number: int
    time: float
    training: float
    step: int
    size: int
    throughput: float | None
    values: tuple[float | None, ...]


class Series:
    """The course of the values of some names, of `loss` in any case; `most` rows at most."""

    def __init__(self, names: Sequence[str] = (), most: int = MAX_POINTS) -> None:
        self.names = tuple(dict.fromkeys([LOSS, *names]))
        self._history = JobHistory(numbers={name: Summary() for name in self.names})
        self._most = max(1, (most - 1) // (2 * (1 + 3 * len(self.names))))
        self._buckets: list[_Bucket] = []
        self._stride = 1
        self._seen = 0
        self._last: Point | None = None
        self._usage: dict[str, float] = {}
        """What was measured last, until it is the value of a report."""

    def observe(self, event: Event) -> None:
        """Take in an event."""
        goes_on = self._history.is_training
        self._history.observe(event)
        if isinstance(event, Usage):
            self._measure(event)
        elif isinstance(event, Progress):
            self._report(event, goes_on)

    def _measure(self, usage: Usage) -> None:
        measured = {name: getattr(usage, field) for name, (field, _) in SYSTEM.items()}
        self._usage = {name: used / SYSTEM[name][1] for name, used in measured.items() if used is not None}
        for name, used in self._usage.items():
            self._history.numbers.setdefault(name, Summary()).observe(used)

    def columns(self) -> dict[str, Any]:
        """Lists of the rows' fields, with `values` by name, and what is known besides."""
        rows = self._rows()
        found = {name: [row.values[at] for row in rows] for at, name in enumerate(self.names)}
        values = {name: [None if _is_gap(one) else one for one in column] for name, column in found.items()}
        gaps = {name: [at for at, one in enumerate(column) if _is_gap(one)] for name, column in found.items()}
        fields = ("time", "training", "step", "size", "throughput")
        return {
            **{name: [getattr(row, name) for row in rows] for name in fields},
            LOSS: values[LOSS],
            "values": values,
            "gaps": gaps,
            "names": sorted(name for name, one in self._history.numbers.items() if not one.is_empty),
            "about": {name: asdict(self._history.numbers[name]) for name in self.names},
            "pauses": self._pauses(),
        }

    def _pauses(self) -> list[dict[str, Any]]:
        """When no step ran: resizes, and starts anew, of which `from` is None."""
        known = sorted([*self._history.resizes, *self._history.starts], key=lambda one: one.end)
        return [
            {
                "from": one.before,
                "to": one.after,
                "start": one.end - one.pause,
                "end": one.end,
                "training": one.training,
                "step": one.step or 0,
                "reason": one.reason,
                "phases": one.phases,
            }
            for one in known[-MAX_PAUSES:]
            if one.pause is not None
        ]

    def _report(self, report: Progress, goes_on: bool) -> None:
        point = Point(
            number=self._seen,
            time=report.time,
            training=self._history.training,
            step=report.step,
            size=report.size,
            throughput=_speed(self._last, report) if goes_on else None,
            values=tuple(self._usage.get(name, _value(report, name)) for name in self.names),
        )
        self._usage = {}
        self._last = point
        if self._seen % self._stride == 0:
            if len(self._buckets) >= 2 * self._most:
                pairs = zip(self._buckets[::2], self._buckets[1::2], strict=True)
                self._buckets = [one.joined(other) for one, other in pairs]
                self._stride *= 2
            self._buckets.append(_Bucket.of(point))
        else:
            self._buckets[-1] = self._buckets[-1].joined(_Bucket.of(point))
        self._seen += 1

    def _rows(self) -> list[Point]:
        rows = [point for bucket in self._buckets for point in bucket.points()]
        return rows if self._last is None or rows[-1].number == self._last.number else [*rows, self._last]


@dataclass(frozen=True)
class _Bucket:
    """Reports that follow each other: the first, and for each value those that stay because of it.

    A gap stays if there is nothing else: beside numbers it would be narrower than what is seen of the bucket.
    """

    first: Point
    lowest: tuple[Point | None, ...]
    highest: tuple[Point | None, ...]
    gaps: tuple[Point | None, ...]

    @classmethod
    def of(cls, point: Point) -> "_Bucket":
        own = tuple(None if value is None or isnan(value) else point for value in point.values)
        return cls(point, own, own, tuple(point if _is_gap(value) else None for value in point.values))

    def joined(self, later: "_Bucket") -> "_Bucket":
        lowest, highest = (
            tuple(
                _better(one, other, at, sign)
                for at, (one, other) in enumerate(zip(ours, theirs, strict=True))
            )
            for ours, theirs, sign in ((self.lowest, later.lowest, 1), (self.highest, later.highest, -1))
        )
        gaps = tuple(ours or theirs for ours, theirs in zip(self.gaps, later.gaps, strict=True))
        return _Bucket(self.first, lowest, highest, gaps)

    def points(self) -> list[Point]:
        kept = (self.first, *self.lowest, *self.highest, *self.gaps)
        found = {one.number: self._without_gaps(one) for one in kept if one is not None}
        return [found[number] for number in sorted(found)]

    def _without_gaps(self, point: Point) -> Point:
        """A point that is no gap in the values of which the bucket has numbers."""
        values = zip(point.values, self.lowest, strict=True)
        shown = tuple(None if _is_gap(value) and lowest is not None else value for value, lowest in values)
        return point if shown == point.values else replace(point, values=shown)


def _better(one: Point | None, other: Point | None, at: int, sign: int) -> Point | None:
    if one is None or other is None:
        return one or other
    ours, theirs = one.values[at], other.values[at]
    assert ours is not None and theirs is not None  # noqa: PT018 - a bucket has no others
    return other if sign * theirs < sign * ours else one


def _value(report: Progress, name: str) -> float | None:
    value = report.number(name)
    return nan if value is None and _is_number(report.values.get(name)) else value


def _is_gap(value: float | None) -> bool:
    return value is not None and isnan(value)


def number(value: Any) -> float | None:
    """A number that JSON can say; None for anything else."""
    if not _is_number(value):
        return None
    try:
        return float(value) if isfinite(value) else None
    except OverflowError:  # an integer beyond all floats
        return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _speed(before: Point | None, after: Progress) -> float | None:
    if before is None:
        return None
    steps, seconds = after.step - before.step, after.time - before.time
    return steps / seconds if before.size == after.size and steps > 0 and seconds > 0 else None
