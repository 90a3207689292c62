"""From state to state: what becomes of one job, given its wishes, its launcher and its events.

The order of things makes a crash harmless at any point. A job becomes `starting` before its launcher is
started, and only the launcher's end makes it anything that has none; in between it is asked to go, as often
as it takes. Which launcher runs is never remembered: it holds a lock for as long as it lives.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from edt_launch.core.control_protocol import Pause, Request, Stop
from edt_launch.core.errors import ExitCode
from edt_launch.jobs import performance_model
from edt_launch.jobs.observed import Action, JobFacts, Kill, Move, Note, Remember, Send, Sweep
from edt_launch.service.database.records import AllocationRecord, JobRecord
from edt_launch.service.states import ENDED, HAS_LAUNCHER, State, Wanted

AGAIN = 2.0
"""Seconds after which a request is repeated that the launcher has not acknowledged."""

PAUSE_PATIENCE = 900.0
"""Seconds that a job has for saving its state and leaving, before it is ended."""

STOP_PATIENCE = (20.0, 30.0)
"""Seconds after which the workers of a job that is to stop are killed, and its launcher."""

MAX_LOST = 3
"""How often a job is started again whose launcher was killed, unless the user says otherwise."""

_SIGNALLED = frozenset({ExitCode.HUNG_UP, ExitCode.INTERRUPTED, ExitCode.TERMINATED})

_GONE: dict[str, Any] = {
    "size": 0,
    "target": 0,
    "held": (),
    "leaving": (),
    "launcher_pid": None,
    "launcher_started": None,
    "running_since": None,
    "throughput": None,
}
"""Facts of a job without a launcher."""


@dataclass(frozen=True)
class Lived:
    """A job after what has happened to it, and what there is to do about that."""

    job: JobFacts
    actions: tuple[Action, ...] = ()

    def move(self, to: State, reason: str, **facts: Any) -> "Lived":
        """It comes to another state."""
        record = replace(self.job.record, state=to, reason=reason, **facts)
        move = Move(record.id, to, reason, facts)
        return Lived(replace(self.job, record=record), (*self.actions, move))

    def do(self, *actions: Action) -> "Lived":
        """There is more to do."""
        return replace(self, actions=(*self.actions, *actions))


def live(now: float, job: JobFacts) -> Lived:
    """What becomes of a job now."""
    lived = Lived(job)
    if job.is_hidden:
        return lived
    while (after := _live(now, lived)) != lived and after.job.record.state is not lived.job.record.state:
        lived = after
    return after


def _live(now: float, lived: Lived) -> Lived:
    job = lived.job
    match job.record.state, job.record.wanted:
        case ((State.QUEUED | State.PAUSED), Wanted.STOP):
            return lived.move(State.STOPPED, "its owner has stopped it")
        case State.QUEUED, Wanted.PAUSE:
            return lived.move(State.PAUSED, "its owner has paused it", waiting_since=None)
        case State.PAUSED, Wanted.RUN:
            return lived.move(State.QUEUED, "its owner has resumed it", waiting_since=now)
    if job.record.state not in HAS_LAUNCHER:
        return lived
    return _alive(now, lived) if job.launcher.is_alive else _gone(now, lived)


# Its launcher is alive.


def _alive(now: float, lived: Lived) -> Lived:
    job = lived.job
    match job.record.state, job.record.wanted:
        case ((State.STARTING | State.RUNNING | State.PAUSING | State.SUSPENDING), Wanted.STOP):
            return _ask(now, lived, State.STOPPING, "its owner stops it")
        case ((State.STARTING | State.RUNNING | State.SUSPENDING), Wanted.PAUSE):
            return _ask(now, lived, State.PAUSING, "its owner pauses it")
        case State.STARTING, _ if _runs(job):
            return lived.move(State.RUNNING, job.record.reason, started=job.record.started or now)
        case ((State.STOPPING | State.PAUSING | State.SUSPENDING), _):
            return _ask_again(now, lived)
    return lived


def _runs(job: JobFacts) -> bool:
    """Whether the present launcher's workers have formed a world, or its driver is there."""
    run = job.run
    return run is not None and run.exit_code is None and (run.size > 0 or run.is_driven)


def _ask(now: float, lived: Lived, to: State, reason: str) -> Lived:
    record = lived.job.record
    notes = {**record.notes, "asked": now, "told": now}
    return lived.move(to, reason, notes=notes).do(Send(record.id, _request(to, now, 0.0)))


def _request(state: State, asked: float, waited: float) -> Request:
    """What a job that is on its way out is asked for; the same again has the same id."""
    if state is not State.STOPPING:
        return Pause(f"pause-{asked}") if waited < PAUSE_PATIENCE else Stop(f"stop-{asked}")
    return Stop(f"stop-{asked}") if waited < STOP_PATIENCE[0] else Stop(f"kill-{asked}", at_once=True)


def suspend(now: float, job: JobFacts, reason: str) -> Lived:
    """Take all devices away from a job that runs, its state saved."""
    return _ask(now, Lived(job), State.SUSPENDING, reason)


def _ask_again(now: float, lived: Lived) -> Lived:
    """A launcher that has just been started may not listen yet; one that does not end needs more."""
    record = lived.job.record
    if now - record.notes.get("told", 0.0) < AGAIN:
        return lived
    asked = record.notes.get("asked", now)
    request = _request(record.state, asked, now - asked)
    is_to_be_killed = record.state is State.STOPPING and now - asked >= STOP_PATIENCE[1]
    if lived.job.launcher.accepted == request.id and not is_to_be_killed:
        return lived
    notes = {**record.notes, "asked": asked, "told": now}
    job = replace(lived.job, record=replace(record, notes=notes))
    action = Kill(record.id) if is_to_be_killed else Send(record.id, request)
    return Lived(job, (*lived.actions, Note(record.id, {"notes": notes}), action))


# Its launcher is gone.


def _gone(now: float, lived: Lived) -> Lived:
    job = lived.job
    record, launcher = job.record, job.launcher
    if launcher.has_leftovers:
        return lived.do(Sweep(record.id))
    if job.is_behind:
        return lived
    if launcher.identity is None:
        if launcher.exit_code is None:  # nobody knows that it was started at all
            return _back(now, lived, "its launcher was not started")
        text = f"edt-launch has ended with exit code {launcher.exit_code}: {launcher.said or 'no output'}"
        return _end(now, lived, State.FAILED, "it could not be started", launcher.exit_code, text)
    run = job.run
    if run is None or run.exit_code is None:
        return _lost(now, lived, "its launcher was killed")
    if run.exit_code == ExitCode.SUCCESS:
        return _end(now, lived, State.SUCCEEDED, "the training function has returned", 0, None)
    if run.exit_code == ExitCode.LEFT:
        return _back(now, lived, "its workers have left, their state is saved")
    if run.exit_code in _SIGNALLED:
        return _lost(now, lived, f"its launcher was ended by a signal (exit code {run.exit_code})")
    return _end(now, lived, State.FAILED, "it has failed", run.exit_code, run.message)


def _back(now: float, lived: Lived, reason: str, **facts: Any) -> Lived:
    """Where it can be started from again, or where it was to go."""
    lived = _freed(now, lived, reason)
    match lived.job.record.state:
        case State.STOPPING:
            return lived.move(State.STOPPED, "its owner has stopped it", **_GONE, **facts)
        case State.PAUSING:
            return lived.move(State.PAUSED, "its owner has paused it", **_GONE, **facts)
    return lived.move(State.QUEUED, reason, waiting_since=now, **_GONE, **facts)


def _lost(now: float, lived: Lived, reason: str) -> Lived:
    """It was ended from outside; its newest checkpoint is there to go on from."""
    record = lived.job.record
    if record.state not in (State.STARTING, State.RUNNING):
        return _back(now, lived, reason)
    lost = int(record.notes.get("lost", 0)) + 1
    most = MAX_LOST if record.max_restarts is None else record.max_restarts
    if lost > most:
        text = f"{reason}, {lost} times; it is started again {most} times at most"
        return _end(now, lived, State.FAILED, "it has failed", None, text)
    facts = {"notes": {**record.notes, "lost": lost}, "restarts": record.restarts + 1}
    return _back(now, lived, f"{reason}; it goes on from its newest checkpoint", **facts)


def _end(
    now: float, lived: Lived, to: State, reason: str, exit_code: int | None, failure: str | None
) -> Lived:
    lived = _freed(now, lived, reason)
    facts = {**_GONE, **progress(lived.job), **_GONE}
    if failure is not None:  # a job may have written it: PostgreSQL does not take every character
        failure = failure.encode(errors="replace").decode().replace("\0", "?")
    return lived.move(to, reason, **facts, exit_code=exit_code, failure=failure, ended=now)


def _freed(now: float, lived: Lived, reason: str) -> Lived:
    """Its devices are free."""
    record = lived.job.record
    if not record.size:
        return lived
    return lived.do(Remember(AllocationRecord(record.id, record.owner, now, record.size, 0, (), reason)))


# What is known of it.


def progress(job: JobFacts) -> dict[str, Any]:
    """Facts that its events tell."""
    progress = job.progress
    run = job.run
    return {
        "step": progress.step,
        "total_steps": progress.total_steps,
        "loss": progress.loss,
        "throughput": _rounded(performance_model.throughput(progress)),
        "resizes": progress.resizes,
        "restarts": progress.restarts + int(job.record.notes.get("lost", 0)),
        "resize_cost": _rounded(performance_model.resize_cost(progress)),
        "speedup": performance_model.speedup(progress),
        "launcher_pid": run.pid if run is not None else None,
        "launcher_started": run.started if run is not None else None,
    }


def changed(record: JobRecord, facts: dict[str, Any]) -> dict[str, Any]:
    """Those facts that differ from the job's row."""
    return {name: value for name, value in facts.items() if getattr(record, name) != value}


def tell_progress(job: JobFacts) -> Iterator[Note]:
    """Write down what a job's events tell, if it is new."""
    if job.record.state in ENDED or job.is_hidden:
        return
    facts = changed(job.record, progress(job))
    if facts:
        yield Note(job.record.id, facts)


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")
