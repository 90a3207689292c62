"""The lives of a job's workers, rank by rank, from its events. Pure functions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from edt_launch.core import events
from edt_launch.core.events import Event

MAX_RANKS = 64
"""Ranks that are shown: the first."""

LEAST_WIDTH = 0.3
"""Percents of the whole time that the shortest part is drawn as, so that it is seen."""

MAX_LIVES = 200
"""Parts of lives that are shown: the latest."""


@dataclass(frozen=True)
class Part:
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

    ranks: Sequence[tuple[int, Sequence[Part]]]
    start: float
    end: float
    left_out: int


@dataclass
class _Worker:
    """A worker that lives; `since` is when it has got its rank."""

    number: int
    where: str
    rank: int
    since: float
    is_training: bool = False

    def until(self, time: float, state: str = "") -> Part:
        doing = state or ("training" if self.is_training else "starting")
        return Part(self.rank, self.number, self.where, self.since, time, doing)


def lives(happened: Iterable[Event], now: float | None) -> Lives:
    """The lives that events tell of; `now` is when those go on that have not ended, None if the job has."""
    living: dict[int, _Worker] = {}
    parts: list[Part] = []
    last = 0.0
    for event in happened:
        last = event.time
        match event:
            case events.Launched():
                parts += [worker.until(last, "left") for worker in living.values()]
                living.clear()
            case events.Started():
                where = event.host if event.device is None else f"{event.host} {event.device}"
                living[event.worker] = _Worker(event.worker, where, event.rank, last)
            case events.World():
                parts += _ranked(living, event)
            case events.Failed() | events.Lost() if event.worker in living:
                state = "failed" if isinstance(event, events.Failed) else "lost"
                parts.append(living.pop(event.worker).until(last, state))
            case events.Left() | events.Released() if event.worker in living:
                parts.append(living.pop(event.worker).until(last, "left"))
    parts += [worker.until(last if now is None else now) for worker in living.values()]
    return _drawn(parts)


def _ranked(living: dict[int, _Worker], world: events.World) -> list[Part]:
    """The parts that end because workers have another rank, or begin to train."""
    ended = []
    for number, rank in world.ranks.items():
        worker = living.get(int(number))
        if worker is None or (worker.is_training and worker.rank == rank):
            continue
        ended.append(worker.until(world.time))
        worker.rank, worker.since, worker.is_training = rank, world.time, True
    return ended


def _drawn(parts: list[Part]) -> Lives:
    shown = sorted(parts, key=lambda part: part.start)[-MAX_LIVES:]
    shown = [part for part in shown if part.rank < MAX_RANKS]
    start = min((part.start for part in shown), default=0.0)
    end = max((part.end for part in shown), default=0.0)
    whole = max(end - start, 1e-3)
    by_rank: dict[int, list[Part]] = {}
    for part in shown:
        left, width = 100 * (part.start - start) / whole, 100 * (part.end - part.start) / whole
        drawn = replace(part, left=round(left, 2), width=round(max(width, LEAST_WIDTH), 2))
        by_rank.setdefault(part.rank, []).append(drawn)
    return Lives(sorted(by_rank.items()), start, end, len(parts) - len(shown))
