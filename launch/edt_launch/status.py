"""What a job looks like at the moment: a pure fold over its events, for whoever shows it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from edt_launch.pace import Mark

HISTORY = 500
"""Reports of progress that are kept."""


@dataclass(frozen=True)
class Resize:
    """A change of the number of workers.

    Attributes:
        generation: of the world after it.
        step: optimizer steps done before; None if unknown.
        before, after: numbers of workers.
        pause: seconds in which nothing was trained; None while it lasts.
        reason: why the world was formed anew.
    """

    generation: int
    step: int | None
    before: int
    after: int
    pause: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Status:
    """A job at the moment.

    Attributes:
        size: number of workers; None before the first world.
        generation: of the world in force, 0 before the first.
        epoch: of the last report.
        values: what the script has reported, latest values.
        history: the latest reports of progress, oldest first.
        resizes: all changes of size, oldest first.
        starting: workers that are being started.
        exit_code: how the job ended, None while it runs.
        reason: why it ended.
    """

    size: int | None = None
    generation: int = 0
    epoch: int | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    history: tuple[Mark, ...] = ()
    resizes: tuple[Resize, ...] = ()
    starting: frozenset[int] = frozenset()
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

    def observe(self, event: Mapping[str, Any]) -> "Status":
        """The status after one more event; one that is unknown changes nothing."""
        match event:
            case {"event": "started", "worker": int(worker)}:
                return replace(self, starting=self.starting | {worker})
            case {"event": "ready" | "left" | "failed" | "released", "worker": int(worker)}:
                return replace(self, starting=self.starting - {worker})
            case {"event": "world", "generation": int(generation), "size": int(size)}:
                return self._world(generation, size, event.get("reason", ""))
            case {"event": "resumed", "generation": int(generation), "pause": float() | int() as pause}:
                resizes = (
                    replace(r, pause=float(pause)) if r.generation == generation else r for r in self.resizes
                )
                return replace(self, resizes=tuple(resizes))
            case {"event": "progress", "step": int(step), "size": int(size), "time": float() | int() as time}:
                mark = Mark(float(time), step, size, self.generation)
                values = {**self.values, **event.get("values", {})}
                history = (*self.history, mark)[-HISTORY:]
                return replace(self, history=history, values=values, epoch=event.get("epoch"))
            case {"event": "finished", "exit_code": int(exit_code)}:
                return replace(self, exit_code=exit_code, reason=event.get("reason", ""))
        return self

    def _world(self, generation: int, size: int, reason: str) -> "Status":
        resizes = self.resizes
        if self.size is not None:
            resizes = (*resizes, Resize(generation, self.step, self.size, size, reason=reason))
        return replace(self, generation=generation, size=size, resizes=resizes)
