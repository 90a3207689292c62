"""What a job looks like at the moment: a pure fold over its events, for whoever shows it.

How fast it is and when it will be done does not depend on what has happened to its size.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from edt_launch.core import events
from edt_messages.records import Value

HISTORY = 500
"""Reports of progress that are kept."""

WINDOW = 30.0
"""Seconds of training at the present size that count for its pace."""

SETTLED = 3
"""Optimizer steps after which the pace at a new size is measured rather than foretold."""


@dataclass(frozen=True)
class Mark:
    """One report of progress: so many optimizer steps done by a world of that size; `time` is in seconds."""

    time: float
    step: int
    size: int
    generation: int = 0


@dataclass(frozen=True)
class Resize:
    """A change of the number of workers after so many optimizer steps, which led to world `generation`.

    `pause` is in seconds, None while it lasts; so are the `phases`, as far as they are known.
    """

    generation: int
    step: int | None
    before: int
    after: int
    pause: float | None = None
    reason: str = ""
    phases: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Status:
    """A job at the moment; None and 0 stand for what has not been."""

    size: int | None = None
    generation: int = 0
    epoch: int | None = None
    values: Mapping[str, Value] = field(default_factory=dict)
    """What the script has reported, latest values."""
    history: tuple[Mark, ...] = ()
    resizes: tuple[Resize, ...] = ()
    starting: frozenset[int] = frozenset()
    """Workers that are being started."""
    standbys: tuple[events.Standby, ...] = ()
    """What those cost that have come in by a resize."""
    warm_servers: Mapping[str, events.WarmServer] = field(default_factory=dict)
    """The latest of each host."""
    checkpoint: int | None = None
    """Optimizer steps done when the last checkpoint was taken."""
    exit_code: int | None = None
    reason: str = ""

    @property
    def step(self) -> int | None:
        """Optimizer steps done; None before the first report."""
        return self.history[-1].step if self.history else None

    @property
    def total(self) -> int | None:
        """Optimizer steps in all, if the script has reported `total_steps`."""
        total = self.values.get("total_steps")
        if isinstance(total, str | bool) or total is None:
            return None
        return int(total) if 0 < total < 2**53 else None

    def observe(self, event: events.Event) -> "Status":
        """The status after one more event."""
        match event:
            case events.Progress(step, epoch, size, values):
                history = (*self.history, Mark(event.time, step, size, self.generation))[-HISTORY:]
                return replace(self, history=history, values={**self.values, **values}, epoch=epoch)
            case events.Started(worker):
                return replace(self, starting=self.starting | {worker})
            case events.Ready() | events.Left() | events.Failed() | events.Released() | events.Lost():
                return replace(self, starting=self.starting - {event.worker})
            case events.World(generation, size):
                return self._world(generation, size, event.reason)
            case events.Resumed(generation, pause=pause, phases=phases):
                return self._resumed(generation, pause, phases)
            case events.Standby() if self.resizes:
                return replace(self, standbys=(*self.standbys, event))
            case events.WarmServer(host, refused=None):
                return replace(self, warm_servers={**self.warm_servers, host: event})
            case events.Checkpointed(step) | events.Restored(step=step):
                return replace(self, checkpoint=step)
            case events.Restarting():
                return self._restarting()
            case events.Finished(exit_code, reason):
                return replace(self, exit_code=exit_code, reason=reason)
        return self

    def _world(self, generation: int, size: int, reason: str) -> "Status":
        resizes = self.resizes
        if self.size is not None:
            resizes = (*resizes, Resize(generation, self.step, self.size, size, reason=reason))
        return replace(self, generation=generation, size=size, resizes=resizes)

    def _resumed(self, generation: int, pause: float, phases: Mapping[str, float]) -> "Status":
        """After a restart generations are counted anew: the last one of that number is meant."""
        resizes = list(self.resizes)
        for at in reversed(range(len(resizes))):
            if resizes[at].generation == generation:
                resizes[at] = replace(resizes[at], pause=pause, phases=phases)
                break
        return replace(self, resizes=tuple(resizes))

    def _restarting(self) -> "Status":
        """A first world comes next; the pace is measured anew."""
        last = tuple(replace(mark, generation=-1) for mark in self.history[-1:])
        return replace(
            self, size=None, generation=0, history=last, starting=frozenset(), exit_code=None, reason=""
        )


def rate(history: Sequence[Mark]) -> float | None:
    """Optimizer steps per second to be expected at the present size; None while nothing is known.

    Measured over the last `WINDOW` seconds at that size. While those are fewer than `SETTLED` steps, it is
    foretold from the size before, in proportion. Pauses between two worlds and steps that are done again do
    not count. The oldest report comes first.
    """
    if not history:
        return None
    size = history[-1].size
    steps, seconds = _measure(history, size)
    if steps >= SETTLED:
        return steps / seconds
    for other in dict.fromkeys(mark.size for mark in reversed(history)):
        other_steps, other_seconds = _measure(history, other)
        if other != size and other_steps >= SETTLED:
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
