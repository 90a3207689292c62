"""What is going to happen in the pool, and that in words. Pure functions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from edt_launch.allocator.forecast.prediction import Start

MAX_NAMED = 3
"""Jobs that a sentence names."""


@dataclass(frozen=True)
class Upcoming:
    """What is going to happen, as far as can be told.

    Attributes:
        waiting: ids of the jobs that wait, in the order in which they start; last, in that of their
            priorities and submissions, those of which that is unknown.
        starts: of the jobs that wait, in their order.
        ends: when running jobs end, the first one first, as (time, id).
        names: of all these jobs, by their ids; the id where there is none.
    """

    waiting: Sequence[str]
    starts: Mapping[str, Start]
    ends: Sequence[tuple[float, str]]
    names: Mapping[str, str]


def begins(job: str, upcoming: Upcoming) -> dict[str, Any] | None:
    """When a job that waits is going to start, as far as can be told; None if it does not wait."""
    if job not in upcoming.waiting:
        return None
    start = upcoming.starts.get(job)
    place, of = upcoming.waiting.index(job) + 1, len(upcoming.waiting)
    return {
        "place": place,
        "of": of,
        "at": start.at if start else None,
        "size": start.size if start else None,
        "after": list(start.after) if start else [],
        "is_any": start is not None and start.is_any,
        "text": f"is number {place} of {of} that {'waits' if of == 1 else 'wait'}, and {starting(start)}",
    }


def starting(start: Start | None) -> str:
    """When a job starts, as the end of a sentence about it; None: nobody knows."""
    if start is None:
        return "nobody can tell when it starts: jobs before it do not say how long they run"
    if not start.after:
        return "starts as soon as devices have been handed over"
    return f"starts {_ends(start)}, about {clock(start.at)}"


def clock(time: float) -> str:
    """The time of day."""
    return datetime.fromtimestamp(time, UTC).strftime("%H:%M UTC")


def _ends(start: Start) -> str:
    *others, last = start.after
    if not others:
        return f"when {last} ends"
    if start.is_any:
        return f"when {', '.join(others)} or {last} ends"
    if len(start.after) <= MAX_NAMED:
        return f"when {', '.join(others)} and {last} have ended"
    return f"when {len(start.after)} jobs have ended, {last} the last"
