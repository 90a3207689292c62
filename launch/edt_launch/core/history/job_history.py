"""A job's history, folded from its events: the one account of it that launcher, service and pages read.

Events may come from a file that the job can write into, and from its middle. So each takes constant time, the
state is bounded, and what is missing is made up from what follows where that is possible.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import NamedTuple

from edt_launch.core.history import events
from edt_messages.records import Value

MAX_MARKS = 500
"""Reports of progress that are kept: the latest."""

MAX_RESIZES = 500
"""Resizes that are kept: the latest."""

MAX_LIVES = 200
"""Parts of workers' lives that are kept: the latest."""

MAX_WORKERS = 2**16
"""Workers that are known at a time."""

MAX_NAMES = 200
"""Names of numbers that are noted; scripts may report any."""

MAX_VALUES = 1000
"""Names whose latest values are kept."""

MAX_NUMBER = 1e300
"""Numbers that every database can hold are smaller."""

MAX_TEXT = 200
"""Characters of a value that is a text."""


class Mark(NamedTuple):
    """One report of progress: so many optimizer steps done by a world of that size; `time` is in seconds."""

    time: float
    step: int
    size: int
    generation: int = 0


@dataclass(frozen=True)
class Resize:
    """A change of the number of workers, or a start anew, after so many optimizer steps.

    Attributes:
        generation: of the world that it led to.
        before, after: number of workers; `before` is None for a start anew.
        pause: seconds in which nothing was trained; None while it lasts.
        phases: seconds, as far as they are known.
        end: when training went on, unix seconds.
        training: seconds of training before it.
    """

    generation: int
    step: int | None
    before: int | None
    after: int
    pause: float | None = None
    reason: str = ""
    phases: Mapping[str, float] = field(default_factory=dict)
    end: float = 0.0
    training: float = 0.0


@dataclass
class Summary:
    """What is known of all reports of a value: `missing` counts those without a finite number."""

    lowest: float | None = None
    highest: float | None = None
    last: float | None = None
    missing: int = 0

    def observe(self, value: float | None) -> None:
        """Take in a reported value."""
        if value is None:
            self.missing += 1
            return
        self.last = value
        if self.lowest is None or value < self.lowest:
            self.lowest = value
        if self.highest is None or value > self.highest:
            self.highest = value

    @property
    def is_empty(self) -> bool:
        """Whether nothing was reported."""
        return self.last is None and not self.missing


@dataclass(frozen=True)
class Life:
    """A part of a worker's life in which it had one rank; times are unix seconds.

    Attributes:
        end: None while it lasts.
        state: `starting` or `training`; of a worker's last part, `failed`, `lost` or `left`.
        is_ready: whether it waits at the rendezvous, or did.
    """

    worker: int
    rank: int
    host: str
    device: str | None
    start: float
    end: float | None = None
    state: str = "starting"
    is_ready: bool = False


@dataclass
class JobHistory:
    """A job so far; None and 0 stand for what has not been.

    Attributes:
        time: of the last event.
        size, generation: of the present world.
        values: what the script has reported, latest values.
        numbers: of those that are numbers, what is known of all reports; of the first `MAX_NAMES` names.
        marks: reports of progress.
        training: seconds of training so far, without pauses.
        is_training: whether the last report follows the one before without a start anew between them.
        resizes, starts: changes of the number of workers, and starts anew.
        living: the present part of each worker's life, by serial number.
        lives: the parts that have ended.
        gone: workers whose processes have ended.
        standbys: what those cost that have come in by a resize.
        warm_servers: the latest of each host.
        checkpoint: optimizer steps done when the last checkpoint was taken.
        exit_code, reason: how the last run of the workers ended.
    """

    time: float = 0.0
    size: int | None = None
    generation: int = 0
    epoch: int | None = None
    values: dict[str, Value] = field(default_factory=dict)
    numbers: dict[str, Summary] = field(default_factory=dict)
    marks: deque[Mark] = field(default_factory=lambda: deque(maxlen=MAX_MARKS))
    training: float = 0.0
    is_training: bool = False
    resizes: list[Resize] = field(default_factory=list)
    starts: deque[Resize] = field(default_factory=lambda: deque(maxlen=MAX_RESIZES))
    living: dict[int, Life] = field(default_factory=dict)
    lives: deque[Life] = field(default_factory=lambda: deque(maxlen=MAX_LIVES))
    gone: set[int] = field(default_factory=set)
    standbys: list[events.Standby] = field(default_factory=list)
    warm_servers: dict[str, events.WarmServer] = field(default_factory=dict)
    checkpoint: int | None = None
    exit_code: int | None = None
    reason: str = ""
    _paused: float = field(default=0.0, init=False)
    _why: str = field(default="", init=False)
    """Why the world was formed."""
    _why_anew: str = field(default="", init=False)
    """Why the workers were started again."""

    @property
    def step(self) -> int | None:
        """Optimizer steps done; None before the first report."""
        return self.marks[-1].step if self.marks else None

    @property
    def total(self) -> int | None:
        """Optimizer steps in all, if the script has reported `total_steps`."""
        total = self.values.get("total_steps")
        if isinstance(total, str | bool) or total is None:
            return None
        return int(total) if 0 < total < 2**53 else None

    @property
    def starting(self) -> int:
        """How many workers are being started."""
        return sum(life.state == "starting" and not life.is_ready for life in self.living.values())

    def observe(self, event: events.Event) -> None:
        """Take in the next event."""
        self.time = event.time
        match event:
            case events.Progress():
                self._report(event)
            case events.World():
                self._form(event)
            case events.Resumed():
                self._resume(event)
            case events.Standby() if self.resizes and len(self.standbys) < MAX_WORKERS:
                self.standbys.append(event)
            case events.WarmServer(host, refused=None) if len(self.warm_servers) < MAX_WORKERS:
                self.warm_servers[host] = event
            case events.Checkpointed(step) | events.Restored(step=step):
                self.checkpoint = step
            case events.Begun():
                self._start_anew("started again")
            case events.Restarting(reason=reason):
                self._start_anew(reason)
            case events.Finished(exit_code, reason):
                self.exit_code, self.reason = exit_code, reason
            case _:
                self._observe_worker(event)

    def _observe_worker(self, event: events.Event) -> None:
        match event:
            case events.Launched():
                self._end_all()
            case events.Started(worker, host, device=device, rank=rank):
                if len(self.living) < MAX_WORKERS:
                    self.living[worker] = Life(worker, rank, host, device, event.time)
                self.gone.discard(worker)
            case events.Ready(worker) if worker in self.living:
                self.living[worker] = replace(self.living[worker], is_ready=True)
            case events.Failed(worker):
                self._end(worker, "failed")
            case events.Lost(worker):
                self._end(worker, "lost")
            case events.Left(worker) | events.Released(worker):
                self._end(worker, "left")

    def _report(self, report: events.Progress) -> None:
        last = self.marks[-1] if self.marks else None
        if last is not None and self.is_training:
            self.training += max(0.0, report.time - last.time - self._paused)
        elif last is not None:
            start = Resize(
                self.generation, last.step, None, report.size, report.time - last.time, self._why_anew
            )
            self.starts.append(replace(start, end=report.time, training=self.training))
        self._paused, self.is_training, self.epoch = 0.0, True, report.epoch
        self.marks.append(Mark(report.time, report.step, report.size, self.generation))
        for name, value in report.values.items():
            if name in self.values or len(self.values) < MAX_VALUES:
                self.values[name] = value[:MAX_TEXT] if isinstance(value, str) else value
            if isinstance(value, str | bool):
                continue
            summary = self.numbers.get(name)
            if summary is None and len(self.numbers) < MAX_NAMES:
                summary = self.numbers[name] = Summary()
            if summary is not None:
                summary.observe(value if abs(value) < MAX_NUMBER else None)

    def _form(self, world: events.World) -> None:
        if self.size is not None:
            resize = Resize(world.generation, self.step, self.size, world.size, reason=world.reason)
            self.resizes = [*self.resizes[1 - MAX_RESIZES :], resize]
        self.generation, self.size, self._why = world.generation, world.size, world.reason
        for number, rank in world.ranks.items():
            life = self.living.get(number)
            if life is not None and (life.state != "training" or life.rank != rank):
                self.lives.append(replace(life, end=world.time))
                self.living[number] = replace(life, rank=rank, start=world.time, state="training")

    def _resume(self, resumed: events.Resumed) -> None:
        """Training goes on; as a restart counts generations anew, the last one of that number is meant."""
        self._paused += resumed.pause
        done = Resize(
            resumed.generation,
            self.step,
            resumed.from_,
            resumed.to,
            resumed.pause,
            self._why,
            resumed.phases,
            end=self.time,
            training=self.training,
        )
        for at in reversed(range(len(self.resizes))):
            begun = self.resizes[at]
            if begun.generation == done.generation and begun.pause is None:
                self.resizes[at] = replace(done, step=begun.step, reason=begun.reason)
                return
        self.resizes = [*self.resizes[1 - MAX_RESIZES :], done]

    def _start_anew(self, reason: str) -> None:
        """A first world comes next; the pace is measured anew."""
        self._end_all()
        self.size, self.generation, self.exit_code, self.reason = None, 0, None, ""
        self.is_training, self._why_anew = False, reason
        last = [mark._replace(generation=-1) for mark in islice(reversed(self.marks), 1)]
        self.marks.clear()
        self.marks.extend(last)

    def _end(self, worker: int, state: str) -> None:
        life = self.living.pop(worker, None)
        if life is not None:
            self.lives.append(replace(life, end=self.time, state=state))
        if state != "lost" and len(self.gone) < MAX_WORKERS:
            self.gone.add(worker)

    def _end_all(self) -> None:
        """Whatever ran before has been ended."""
        for worker in tuple(self.living):
            self._end(worker, "left")
