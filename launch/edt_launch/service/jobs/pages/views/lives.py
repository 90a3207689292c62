"""The lives of a job's workers, rank by rank. Pure functions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from edt_launch.core.history.job_history import JobHistory, Life

MAX_RANKS = 64
"""Ranks that are shown: the first."""

LEAST_WIDTH = 0.3
"""Percents of the whole time that the shortest part is drawn as, so that it is seen."""


@dataclass(frozen=True)
class LifePart:
    """A part of a worker's life, in which it had one rank; times are unix seconds.

    Attributes:
        state: `starting`; `training`; or, of its last part, `failed` or `lost`; else `left`.
        left, width: percents of the whole time that is shown.
    """

    rank: int
    worker: int
    where: str
    start: float
    end: float
    state: str
    left: float = 0.0
    width: float = 0.0


@dataclass(frozen=True)
class Lives:
    """The parts of lives by rank, and the time that they are shown over."""

    ranks: Sequence[tuple[int, Sequence[LifePart]]]
    start: float
    end: float
    left_out: int


def lives(history: JobHistory, now: float | None) -> Lives:
    """The lives of a history; `now` is when those go on that have not ended, None if the job has."""
    until = history.time if now is None else now
    return _drawn([_part(life, until) for life in (*history.lives, *history.living.values())])


def _part(life: Life, until: float) -> LifePart:
    where = life.host if life.device is None else f"{life.host} {life.device}"
    return LifePart(
        life.rank, life.worker, where, life.start, until if life.end is None else life.end, life.state
    )


def _drawn(parts: list[LifePart]) -> Lives:
    shown = [part for part in sorted(parts, key=lambda part: part.start) if part.rank < MAX_RANKS]
    start = min((part.start for part in shown), default=0.0)
    end = max((part.end for part in shown), default=0.0)
    whole = max(end - start, 1e-3)
    by_rank: dict[int, list[LifePart]] = {}
    for part in shown:
        left, width = 100 * (part.start - start) / whole, 100 * (part.end - part.start) / whole
        drawn = replace(part, left=round(left, 2), width=round(max(width, LEAST_WIDTH), 2))
        by_rank.setdefault(part.rank, []).append(drawn)
    return Lives(sorted(by_rank.items()), start, end, len(parts) - len(shown))
