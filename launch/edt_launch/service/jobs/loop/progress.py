"""What a job's events say of it: a pure fold over them that can be stored and continued."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from edt_launch.agent.protocol import LEASE
from edt_launch.cluster.allocation import DEVICE, HOST
from edt_launch.core.history import events
from edt_launch.core.history.events import Event

PAUSES = 10
"""Pauses that count for the cost of a resize, and starts for that of a start."""

MEMORY_STEPS = 1000
"""Steps at one size after which older ones count less and less for the pace there."""

MAX_WORKERS = 2**20
"""Workers of a job of which nothing is known."""

MAX_LOSSES = 10**6
"""Failures of workers that are counted."""

LOST_GRACE = 2 * LEASE
"""Seconds after the end of a launcher for which a worker keeps its device that nobody can say anything about.
"""

MAX_LOST = 4096
"""Devices of lost workers that are remembered, and hosts that cannot be reached."""

MAX_REASON = 300
"""Characters of the reason why a host cannot be reached."""

PRIOR_COST = 5.0
"""Seconds that a resize, and a start, are taken to cost; counts like one that was seen."""

MAX_START_COST = 600.0
"""Seconds that a start is taken to cost at most. The longer it takes, the longer are a job's turns, and a job
itself says how long it took.
"""

SETTLED_STEPS = 10
SETTLED_SECONDS = 30.0
"""Optimizer steps and seconds at one size before its pace is believed: what holds a job up for a moment, a
validation for instance, is no property of the size.
"""

# The bounds of events, for progress that was written down, where the job can change it.
Number = Annotated[int, Field(ge=0, lt=2**31)]
Serial = Annotated[int, Field(ge=0, lt=2**53)]
Seconds = Annotated[float, Field(ge=0, lt=2**53)]
HostName = Annotated[str, Field(pattern=f"^(?:{HOST})$")]
DeviceName = Annotated[str, Field(pattern=f"^(?:{DEVICE})$")]

Device = tuple[str, str]
"""A host and one of its devices."""


@dataclass(frozen=True)
class Pace:
    """Optimizer steps done at one number of workers, and the seconds they took."""

    size: Number
    steps: Seconds
    seconds: Seconds


@dataclass(frozen=True)
class LauncherRun:
    """One `edt-launch` of the job.

    Attributes:
        pid, started: its process, and the seconds from the start of the machine to that of the process.
        min_np, max_np: bounds that it keeps to.
        following: generation of the newest allocation that it starts workers by; -1 before the first.
        usable: workers that the program can use at most, as it has said; None while it has not.
        workers: those whose processes may be there: serial number, host, device. Each is listed until it is
            known to be gone, also after the end of its launcher.
        lost: those of them that nobody can say anything about, by their serial numbers.
        inherited: devices of workers that earlier launchers never knew to be gone: host, device, and when
            they were given up, unix seconds.
        size: workers in the present world; 0 before the first.
        began: when its first process was started, unix seconds; None before that.
        is_driven: whether the script has begun in a driver, which has workers started when it wants them.
        exit_code, message: how it ended; None and empty while it has not said so.
        worker_exit_code: of the worker whose failure ended the job; None if none did.
    """

    pid: Number = 0
    started: Seconds = 0.0
    min_np: Number = 1
    max_np: Number = 1
    following: Annotated[int, Field(ge=-1, lt=2**53)] = -1
    usable: Number | None = None
    workers: tuple[tuple[Serial, HostName, DeviceName], ...] = ()
    lost: tuple[Serial, ...] = ()
    inherited: tuple[tuple[HostName, DeviceName, Seconds], ...] = ()
    size: Number = 0
    began: Seconds | None = None
    is_driven: bool = False
    exit_code: Number | None = None
    message: str = ""
    worker_exit_code: Number | None = None

    @property
    def devices(self) -> frozenset[Device]:
        """Devices that its workers, or those of a launcher before, may be using."""
        inherited = ((host, device) for host, device, _ in self.inherited)
        return frozenset((*((host, device) for _, host, device in self.workers), *inherited))


@dataclass(frozen=True)
class JobProgress:
    """The whole job so far.

    Attributes:
        run: the latest `edt-launch`; None before the first.
        can_save: whether a worker has come to an elastic function, or has written a checkpoint.
        step, total_steps, loss: as reported last.
        paces: of each size, ascending.
        pauses: the latest ones, seconds.
        starts: seconds from the start of a launcher to the first report of a step, of the latest ones.
        begun: when the launcher started, unix seconds, if nothing has been reported since.
        resizes: worlds that were formed of another number of workers than the one before.
        restarts: how often a launcher has started its workers again.
        losses: workers that have failed.
        reported: time, step and size of the last report; None where nothing connects to it.
        stepped: when a step was reported last that was another one than the one before.
        suspended: devices whose workers have failed, and when they are tried again, unix seconds.
        unreachable: hosts that it cannot reach, since when, and why.
        heard: time of the last event.
    """

    run: LauncherRun | None = None
    can_save: bool = False
    step: Serial | None = None
    total_steps: Annotated[int, Field(ge=0, lt=2**62)] | None = None
    loss: Annotated[float, Field(gt=-1e300, lt=1e300)] | None = None
    paces: tuple[Pace, ...] = ()
    pauses: Annotated[tuple[Seconds, ...], Field(max_length=PAUSES)] = ()
    starts: Annotated[tuple[Seconds, ...], Field(max_length=PAUSES)] = ()
    begun: Seconds | None = None
    resizes: Number = 0
    restarts: Number = 0
    losses: Number = 0
    reported: tuple[Seconds, Serial, Number] | None = None
    stepped: Seconds | None = None
    suspended: tuple[tuple[HostName, DeviceName, Seconds], ...] = ()
    unreachable: tuple[tuple[HostName, Seconds, str], ...] = ()
    heard: Seconds = 0.0

    def after(self, happened: Iterable[Event], most: int = MAX_WORKERS) -> "tuple[JobProgress, int]":
        """The progress after more events, each of which takes constant time.

        Args:
            happened: in that order.
            most: workers that the job can have at most. No world has more, and no more than twice as many
                processes are there at a time, which is when all are being replaced.

        Returns:
            The progress, and how many events were refused because of `most`.
        """
        fold = _Fold(self, most)
        for event in happened:
            fold.observe(event)
        return fold.progress(), fold.refused

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> "JobProgress":
        """The progress that `asdict` made this of.

        Raises:
            ValueError: it was written by another version, or by somebody else.
        """
        return TypeAdapter(cls).validate_python(written)

    @property
    def resize_cost(self) -> float:
        """Seconds of its time that a resize costs the job: the mean of its latest pauses and the prior."""
        return (PRIOR_COST + sum(self.pauses)) / (1 + len(self.pauses))

    @property
    def start_cost(self) -> float:
        """Seconds of its time that a start costs the job: the mean of its latest starts and the prior."""
        return min(MAX_START_COST, (PRIOR_COST + sum(self.starts)) / (1 + len(self.starts)))

    @property
    def speedup(self) -> tuple[tuple[int, float], ...]:
        """Points (workers, speed), ascending, relative to one worker; empty while fewer than two are known.

        Up to the smallest size that has been measured the speed is taken to be linear.
        """
        known, unit = self._known_paces, self.step_time
        if len(known) < 2 or unit is None:
            return ()
        return tuple((pace.size, round(pace.steps / pace.seconds * unit, 3)) for pace in known)

    @property
    def step_time(self) -> float | None:
        """Seconds of an optimizer step with one worker, by the smallest size known; None while none is."""
        known = self._known_paces
        return known[0].seconds / known[0].steps * known[0].size if known else None

    @property
    def _known_paces(self) -> Sequence[Pace]:
        return [
            pace for pace in self.paces if pace.steps >= SETTLED_STEPS and pace.seconds >= SETTLED_SECONDS
        ]

    @property
    def throughput(self) -> float | None:
        """Optimizer steps a second at the present size; None while it is unknown."""
        size = self.run.size if self.run is not None else 0
        pace = next((pace for pace in self.paces if pace.size == size), None)
        return pace.steps / pace.seconds if pace is not None and pace.seconds > 0 else None


class _Fold:
    """Progress while events are added to it: what is large is changed in place."""

    def __init__(self, before: JobProgress, most: int) -> None:
        self.refused = 0
        self._most = most
        self._run = before.run
        self._now = before
        self._paces = {pace.size: pace for pace in before.paces[:most]}
        run = before.run or LauncherRun()
        lost = frozenset(run.lost)
        self._workers: dict[int, dict[Device, None]] = {}
        self._lost: dict[int, dict[Device, None]] = {}
        for number, *at in run.workers:
            kind = self._lost if number in lost else self._workers
            kind.setdefault(number, {})[at[0], at[1]] = None
        self._inherited = {(host, device): since for host, device, since in run.inherited}
        self._suspended = {(host, device): until for host, device, until in before.suspended}
        self._unreachable = {host: (since, reason) for host, since, reason in before.unreachable}

    def progress(self) -> JobProgress:
        paces = tuple(sorted(self._paces.values(), key=lambda pace: pace.size))
        run = self._run
        if run is not None:
            workers = {**self._lost, **self._workers}
            shown = tuple((number, *device) for number, devices in workers.items() for device in devices)
            inherited = tuple((*device, since) for device, since in self._inherited.items())
            run = replace(run, workers=shown, lost=tuple(self._lost), inherited=inherited)
        suspended = tuple((host, device, until) for (host, device), until in self._suspended.items())
        unreachable = tuple((host, *about) for host, about in self._unreachable.items())
        return replace(self._now, run=run, paces=paces, suspended=suspended, unreachable=unreachable)

    def observe(self, event: Event) -> None:
        refused = self.refused
        self._observe(event)
        if self.refused == refused:
            self._now = replace(self._now, heard=event.time)
        if self._inherited:
            known = self._inherited.items()
            self._inherited = {device: since for device, since in known if event.time < since + LOST_GRACE}

    def _observe(self, event: Event) -> None:
        now = self._now
        match event:
            case events.Progress(size=size) | events.World(size=size) if size > self._most:
                self.refused += 1
            case events.Progress():
                self._report(event)
            case events.Begun(pid, started, low, high):
                self._inherit_workers(now.heard)
                self._run = LauncherRun(pid, started, low, high)
                self._suspended.clear()
                self._unreachable.clear()
                self._now = replace(now, reported=None, begun=event.time)
            case events.Restarting():
                self._now = replace(now, restarts=now.restarts + 1, reported=None)
            case events.Failed():
                self._now = replace(now, losses=min(now.losses + 1, MAX_LOSSES))
                self._suspend(event)
            case events.Ready() | events.Checkpointed():
                self._now = replace(now, can_save=True)
            case events.HostUnreachable() | events.HostReachable() | events.AllocationAccepted():
                self._note_hosts(event)
            case events.Resumed(pause=pause):
                self._now = replace(now, pauses=(*now.pauses, pause)[-PAUSES:])
            case _ if self._run is not None:
                if isinstance(event, events.Started) and self._run.began is None:
                    self._run = replace(self._run, began=event.time)
                self._run = self._after(self._run, event)

    def _report(self, report: events.Progress) -> None:
        self._end_start(report.time)
        before, step, size = self._now, report.step, report.size
        total = report.number("total_steps")
        loss = report.number("loss") if "loss" in report.values else before.loss  # None after inf and nan
        self._now = replace(
            before,
            step=step,
            total_steps=int(total) if total is not None and 0 < total < 2**62 else before.total_steps,
            loss=float(loss) if loss is not None else None,
            reported=(report.time, step, size),
            stepped=before.stepped if step == before.step else report.time,
        )
        if before.reported is None or before.reported[2] != size:
            return
        steps, seconds = step - before.reported[1], report.time - before.reported[0]
        if steps <= 0 or seconds <= 0:
            return
        known = self._paces.get(size, Pace(size, 0.0, 0.0))
        kept = min(1.0, MEMORY_STEPS / (known.steps + steps))
        self._paces[size] = Pace(size, known.steps * kept + steps, known.seconds * kept + seconds)

    def _end_start(self, now: float) -> None:
        """The first report of a launcher's workers: what it took to start is known."""
        begun, starts = self._now.begun, self._now.starts
        if begun is not None:
            self._now = replace(self._now, begun=None, starts=(*starts, max(0.0, now - begun))[-PAUSES:])

    def _after(self, run: LauncherRun, event: Event) -> LauncherRun:
        match event:
            case events.World(size=size):
                resizes = self._now.resizes + (run.size not in (0, size))
                self._now = replace(self._now, resizes=resizes, reported=None)
                return replace(run, size=size)
            case events.Launched():  # those before have been told to go; who is gone was reported as released
                self._lose_workers()
                self._unreachable.clear()
                return replace(run, size=0)
            case events.Started(worker, host, device=str(device)) if re.fullmatch(
                HOST, host
            ) and re.fullmatch(DEVICE, device):
                self._start(worker, (host, device))
            case events.Lost(worker):
                self._lose_workers(worker)
            case events.Released(worker):
                self._workers.pop(worker, None)
                self._lost.pop(worker, None)
            case events.Following(generation):
                return replace(run, following=max(run.following, generation))
            case events.Usable(most) if most:
                return replace(run, usable=most)
            case events.Driver():
                return replace(run, is_driven=True)
            case events.Ended(exit_code, message, worker_exit_code):
                self._lose_workers()
                return replace(run, exit_code=exit_code, message=message, worker_exit_code=worker_exit_code)
        return run

    def _suspend(self, failed: events.Failed) -> None:
        known = any((failed.host, failed.device) in devices for devices in self._workers.values())
        if known and failed.device is not None and failed.retry_after is not None:
            self._suspended[failed.host, failed.device] = failed.time + failed.retry_after
            if len(self._suspended) > self._most:
                del self._suspended[next(iter(self._suspended))]

    def _note_hosts(
        self, event: events.HostUnreachable | events.HostReachable | events.AllocationAccepted
    ) -> None:
        """Which hosts it cannot reach, of those that it has."""
        match event:
            case events.HostUnreachable(host, reason):
                if re.fullmatch(HOST, host) and len(self._unreachable) < MAX_LOST:
                    self._unreachable[host] = event.time, reason[:MAX_REASON]
            case events.HostReachable(host):
                self._unreachable.pop(host, None)
            case events.AllocationAccepted(hosts=hosts):
                its = {host.host for host in hosts}
                self._unreachable = {host: about for host, about in self._unreachable.items() if host in its}

    def _start(self, worker: int, device: Device) -> None:
        """A worker has a process on a device; there is such an event for each of its devices."""
        self._suspended.pop(device, None)
        if worker in self._lost:
            self._lost[worker][device] = None
        elif worker in self._workers and device in self._workers[worker]:
            return
        elif sum(map(len, self._workers.values())) < 2 * self._most:
            self._workers.setdefault(worker, {})[device] = None
        else:
            self.refused += 1

    def _lose_workers(self, *numbers: int) -> None:
        """Nobody can say any more whether these workers, or all, are there; they keep their devices."""
        for number in numbers or tuple(self._workers):
            if number in self._workers and sum(map(len, self._lost.values())) < MAX_LOST:
                self._lost[number] = {**self._lost.get(number, {}), **self._workers.pop(number)}

    def _inherit_workers(self, since: float) -> None:
        """Another launcher numbers its workers anew; the one before was heard of last at `since`."""
        for devices in (*self._lost.values(), *self._workers.values()):
            for device in devices:
                if device in self._inherited or len(self._inherited) < MAX_LOST:
                    self._inherited[device] = since
        self._workers.clear()
        self._lost.clear()
