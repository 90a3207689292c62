"""Replays a trace under a policy: exact times between decisions, no steps in between.

Between two decisions a job's speed is constant, so the end of every job is known; the next thing to happen is
a job that is submitted or ends, a device that is handed over, or a decision that is due. A job whose devices
change makes no progress for the resize cost, and neither does one that starts.

Two ways to time decisions: as the service does, shortly after every event and at regular intervals besides
(`Timing()`); or in rounds, as published simulators do (`ROUNDS`), which leaves devices idle until the next
round.
"""

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, inf
from typing import Protocol

from edt_launch.allocator.model import Host, HostDevices
from edt_launch.cli.screen import plural
from edt_launch.tools.simulate.trace import Trace, TraceJob

EPSILON = 1e-6
"""Seconds that count as no time, so that a decision due at an event sees it."""

MAX_PASSES = 10
"""Decisions in a row at one time, each handing on what the one before has freed."""


@dataclass(frozen=True)
class Timing:
    """When decisions are made, and what they cost.

    Attributes:
        interval: seconds between decisions at most; between rounds.
        coalesce: seconds from an event to the decision about it; None: decisions are made in rounds only.
        resize_cost: seconds without progress of a running job whose devices change.
        start_cost: the same of a job that starts; None: as much as a resize.
        hand_over: seconds until the devices of workers that leave can be given to others.
    """

    interval: float = 5.0
    coalesce: float | None = 0.5
    resize_cost: float = 5.0
    start_cost: float | None = None
    hand_over: float = 0.0

    @property
    def cost_of_start(self) -> float:
        """Seconds without progress of a job that starts."""
        return self.resize_cost if self.start_cost is None else self.start_cost


ROUNDS = Timing(interval=60.0, coalesce=None, resize_cost=30.0)
"""As the simulators of Pollux and Tiresias time their decisions, with their cost of a re-allocation."""


@dataclass(frozen=True)
class Live:
    """A job that has been submitted and has not ended.

    Attributes:
        job: what the trace says.
        held: its devices.
        leaving: devices that it has given up and that are not free yet.
        service: GPU-seconds that it has held.
        started: since when it has run without a break; None unless it runs.
        resized: when its devices last changed while it ran; None if never.
        waiting_since: since when it has wanted to run and has not; None if it runs.
    """

    job: TraceJob
    held: tuple[HostDevices, ...] = ()
    leaving: tuple[HostDevices, ...] = ()
    service: float = 0.0
    started: float | None = None
    resized: float | None = None
    waiting_since: float | None = None


class Policy(Protocol):
    """Decides who holds what."""

    @property
    def name(self) -> str: ...  # noqa: D102

    def decide(self, now: float, live: Sequence[Live]) -> Mapping[str, tuple[HostDevices, ...]]:
        """What every job is to hold; jobs that are not named hold nothing.

        Called with the live jobs in the order of their submission. When a job gives up devices that are
        handed over at once, it is called again.
        """


@dataclass(frozen=True)
class SimulatedRun:
    """What became of a job. `sizes` are (time, workers) at every change, the last one when it ended."""

    job: TraceJob
    ended: float
    resizes: int
    suspensions: int
    sizes: tuple[tuple[float, int], ...]


@dataclass(frozen=True)
class SimulatedJob:
    """What became of a trace. Runs are in the order of submission."""

    policy: str
    hosts: tuple[Host, ...]
    timing: Timing
    runs: tuple[SimulatedRun, ...]
    decisions: int

    @property
    def gpus(self) -> int:
        """Devices of the cluster."""
        return sum(len(host.devices) for host in self.hosts)


def machines(gpus: int, per_host: int) -> tuple[Host, ...]:
    """A cluster of `gpus` devices, `per_host` on every host but perhaps the last."""
    sizes = [min(per_host, gpus - first) for first in range(0, gpus, per_host)]
    return tuple(Host(f"node{i:04d}", tuple(str(d) for d in range(size))) for i, size in enumerate(sizes))


def replay(
    trace: Trace,
    hosts: tuple[Host, ...],
    policy: Policy,
    timing: Timing,
    progress: Callable[[int], None] = lambda ended: None,
) -> SimulatedJob:
    """Replay `trace` on `hosts` under `policy`; `progress` is told how many jobs have ended, as they do.

    Raises:
        StuckError: jobs wait that the policy will never run, say because they need more than the cluster has.
    """
    engine = _Engine(trace, hosts, policy, timing)
    while engine.advance():
        progress(len(engine.runs))
    by_id = {run.job.id: run for run in engine.runs}
    runs = tuple(by_id[job.id] for job in trace.jobs)
    return SimulatedJob(policy.name, hosts, timing, runs, engine.decisions)


class StuckError(Exception):
    """Jobs wait for ever."""

    def __init__(self, policy: str, jobs: Sequence[TraceJob]) -> None:
        first = jobs[0]
        super().__init__(
            f"{policy}: {plural(len(jobs), 'job')} left and nothing runs, the first is {first.id} "
            f"(min {first.min}, requested {first.requested})"
        )


@dataclass
class _State:
    """A live job as the engine follows it."""

    job: TraceJob
    waiting_since: float | None
    updated: float
    held: tuple[HostDevices, ...] = ()
    leaving: list[tuple[float, tuple[HostDevices, ...]]] = field(default_factory=list)
    left: float = 1.0
    paused_until: float = 0.0
    speed: float = 0.0
    size: int = 0
    service: float = 0.0
    started: float | None = None
    resized: float | None = None
    resizes: int = 0
    suspensions: int = 0
    version: int = 0
    sizes: list[tuple[float, int]] = field(default_factory=list)

    def advance(self, now: float) -> None:
        """Account for the time up to now."""
        self.service += self.size * (now - self.updated)
        running = now - max(self.updated, min(self.paused_until, now))
        self.left -= running * self.speed
        self.updated = now

    def view(self, now: float) -> Live:
        """The job as policies see it."""
        return Live(
            self.job,
            self.held,
            tuple(part for _, parts in self.leaving for part in parts),
            self.service + self.size * (now - self.updated),
            self.started,
            self.resized,
            self.waiting_since,
        )


class _Engine:
    def __init__(self, trace: Trace, hosts: tuple[Host, ...], policy: Policy, timing: Timing) -> None:
        self._coming = list(reversed(trace.jobs))
        self._hosts, self._policy, self._timing = hosts, policy, timing
        self._live: dict[str, _State] = {}
        self._ends: list[tuple[float, int, str]] = []  # with the state's version: earlier forecasts are void
        self._free_at: list[tuple[float, str]] = []
        self._decide_at = inf
        self.runs: list[SimulatedRun] = []
        self.decisions = 0

    def advance(self) -> bool:
        """Go to the next event and do what it asks for; False when there is none."""
        while self._ends and not self._is_valid(self._ends[0]):
            heapq.heappop(self._ends)
        submit = self._coming[-1].submitted if self._coming else inf
        end = self._ends[0][0] if self._ends else inf
        free = self._free_at[0][0] if self._free_at else inf
        now = min(submit, end, free, self._decide_at)
        if now == inf:
            return False
        if now in (submit, end, free):
            self._happen(now)
        if self._decide_at <= now + EPSILON:
            self._decide(now)
        return True

    def _is_valid(self, end: tuple[float, int, str]) -> bool:
        _, version, job = end
        return job in self._live and self._live[job].version == version

    def _happen(self, now: float) -> None:
        while self._coming and self._coming[-1].submitted <= now:
            job = self._coming.pop()
            self._live[job.id] = _State(job, waiting_since=job.submitted, updated=now)
        while self._ends and self._ends[0][0] <= now:
            end = heapq.heappop(self._ends)
            if self._is_valid(end):
                state = self._live.pop(end[2])
                sizes = (*state.sizes, (now, 0))
                self.runs.append(SimulatedRun(state.job, now, state.resizes, state.suspensions, sizes))
        while self._free_at and self._free_at[0][0] <= now:
            _, job_id = heapq.heappop(self._free_at)
            if job_id in self._live:
                state = self._live[job_id]
                state.leaving = [(at, parts) for at, parts in state.leaving if at > now]
        coalesce, interval = self._timing.coalesce, self._timing.interval
        due = ceil((now - EPSILON) / interval) * interval if coalesce is None else now + coalesce
        self._decide_at = min(self._decide_at, due)

    def _decide(self, now: float) -> None:
        before = {job_id: state.held for job_id, state in self._live.items()}
        for _ in range(MAX_PASSES):
            if not self._apply(now) or self._timing.hand_over:
                break
        for job_id, held in before.items():
            if self._live[job_id].held != held:
                self._change(now, self._live[job_id], held)
        self._decide_at = now + self._timing.interval if self._live else inf
        if not (self._coming or self._ends or self._free_at) and self._live and self._is_stuck(now):
            raise StuckError(self._policy.name, [state.job for state in self._live.values()])

    def _is_stuck(self, now: float) -> bool:
        longest = max(3600.0, 10 * self._timing.interval)
        waits = [now if s.waiting_since is None else s.waiting_since for s in self._live.values()]
        return now - max(waits) > longest

    def _apply(self, now: float) -> bool:
        """Ask the policy and take over what it says; whether devices were given up."""
        self.decisions += 1
        plan = self._policy.decide(now, [state.view(now) for state in self._live.values()])
        given_up = False
        for job_id, state in self._live.items():
            new = plan.get(job_id, ())
            if new == state.held:
                continue
            gone = _without(state.held, new)
            state.held = new
            if gone:
                given_up = True
                if self._timing.hand_over:
                    state.leaving.append((now + self._timing.hand_over, gone))
                    heapq.heappush(self._free_at, (now + self._timing.hand_over, job_id))
        return given_up

    def _change(self, now: float, state: _State, before: tuple[HostDevices, ...]) -> None:
        state.advance(now)
        state.version += 1
        state.size = sum(len(part.devices) for part in state.held)
        state.sizes.append((now, state.size))
        if not state.held:
            state.speed, state.started, state.waiting_since = 0.0, None, now
            state.suspensions += 1
            return
        if before:
            state.resizes += 1
            state.resized, cost = now, self._timing.resize_cost
        else:
            state.started, state.waiting_since, cost = now, None, self._timing.cost_of_start
        state.speed = 1 / state.job.run_time.seconds(state.size, len(state.held))
        state.paused_until = now + cost
        end = state.paused_until + max(0.0, state.left) / state.speed
        heapq.heappush(self._ends, (end, state.version, state.job.id))


def _without(held: Sequence[HostDevices], kept: Sequence[HostDevices]) -> tuple[HostDevices, ...]:
    stay = {part.host: set(part.devices) for part in kept}
    rest = ((part.host, tuple(d for d in part.devices if d not in stay.get(part.host, ()))) for part in held)
    return tuple(HostDevices(host, devices) for host, devices in rest if devices)
