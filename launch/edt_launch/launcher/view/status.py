"""What a job looks like at the moment: a pure fold over its events, for whoever shows it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from edt_launch.core import events
from edt_launch.core.worker_events import Value
from edt_launch.launcher.view.pace import Mark

HISTORY = 500
"""Reports of progress that are kept."""


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
        return int(total) if isinstance(total, int | float) and total > 0 else None

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
        numbers = [resize.generation for resize in self.resizes]
        if generation not in numbers:
            return self
        at = len(numbers) - 1 - numbers[::-1].index(generation)
        resumed = replace(self.resizes[at], pause=pause, phases=phases)
        return replace(self, resizes=(*self.resizes[:at], resumed, *self.resizes[at + 1 :]))

    def _restarting(self) -> "Status":
        """A first world comes next; the pace is measured anew."""
        last = tuple(replace(mark, generation=-1) for mark in self.history[-1:])
        return replace(
            self, size=None, generation=0, history=last, starting=frozenset(), exit_code=None, reason=""
        )
