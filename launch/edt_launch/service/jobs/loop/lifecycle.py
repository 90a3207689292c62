"""From state to state: what becomes of one job, given its desired state, its launcher and its events.

The order of things makes a crash harmless at any point. A job becomes `starting` before its launcher is
started, and only the launcher's end makes it anything that has none; in between it is asked to go until it
acknowledges that. Which launcher runs is never remembered: it holds a lock for as long as it lives.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from edt_launch.core.control_protocol import Pause, Request, Stop
from edt_launch.core.errors import HOST_LOST, ExitCode
from edt_launch.core.history.exit_codes import exit_text
from edt_launch.service.cluster.records import AllocationRecord
from edt_launch.service.jobs.loop.observed import Action, Kill, Move, Note, ObservedJob, Remember, Send, Sweep
from edt_launch.service.jobs.records import PROGRESS, WITHOUT_LAUNCHER, JobRecord
from edt_launch.service.jobs.states import ENDED, HAS_LAUNCHER, State, Wanted

AGAIN = 2.0
"""Seconds after which a request is repeated that the launcher has not acknowledged."""

PAUSE_PATIENCE = 900.0
"""Seconds that a job has for saving its state and leaving, before it is ended."""

STOP_PATIENCE = (20.0, 30.0)
"""Seconds after its grace after which the workers of a job that is to stop are killed, and its launcher."""

LOST = ("suspended", "unreachable")
"""Columns that say what the job's workers have lost, as its events do."""

MAX_LOST = 3
"""How often a job is started again whose launcher or first host was lost, unless the user says otherwise."""

_SIGNALLED = frozenset({ExitCode.HUNG_UP, ExitCode.INTERRUPTED, ExitCode.TERMINATED})

_EXIT_CODES = frozenset(map(int, ExitCode))


@dataclass(frozen=True)
class Transition:
    """A job after what has happened to it, and what there is to do about that."""

    job: ObservedJob
    actions: tuple[Action, ...] = ()

    def move(self, to: State, reason: str, **fields: Any) -> "Transition":
        """Bring the job to another state."""
        record = replace(self.job.record, state=to, reason=reason, **fields)
        return Transition(replace(self.job, record=record), self.actions).do(
            Move(record.id, to, reason, fields)
        )

    def note(self, **fields: Any) -> "Transition":
        """Write columns of its row."""
        record = replace(self.job.record, **fields)
        return replace(self, job=replace(self.job, record=record)).do(Note(record.id, fields))

    def do(self, action: Action) -> "Transition":
        """Add an action."""
        return replace(self, actions=(*self.actions, action))


def advance(now: float, job: ObservedJob) -> Transition:
    """What becomes of a job now."""
    before, after = None, _note_remarks(Transition(job))
    while not job.is_hidden and after.job.record.state is not before:
        before = after.job.record.state
        after = _advance(now, after)
    return after


def _note_remarks(transition: Transition) -> Transition:
    """Record what is wrong with its files, or that nothing is any more."""
    new = changed(transition.job.record, transition.job.remarks)
    return transition.note(**new) if new else transition


def _advance(now: float, transition: Transition) -> Transition:
    job = transition.job
    is_left = job.launcher.has_leftovers
    match job.record.state, job.record.wanted:
        case ((State.QUEUED | State.PAUSED), Wanted.STOP) if not is_left:
            return transition.move(State.STOPPED, "its owner has stopped it")
        case State.QUEUED, Wanted.PAUSE:
            return transition.move(State.PAUSED, "its owner has paused it", waiting_since=None)
        case State.PAUSED, Wanted.RUN:
            return transition.move(State.QUEUED, "its owner has resumed it", waiting_since=now)
        case State.QUEUED, Wanted.RUN if _has_run_out(now, job.record) and not is_left:
            return transition.move(State.STOPPED, _out_of_time(job.record))
    if job.record.state not in HAS_LAUNCHER:
        return transition.do(Sweep(job.record.id)) if is_left else transition
    return _alive(now, transition) if job.launcher.is_alive else _gone(now, transition)


# Its launcher is alive.


def _alive(now: float, transition: Transition) -> Transition:
    job = transition.job
    match job.record.state, job.record.wanted:
        case ((State.STARTING | State.RUNNING | State.PAUSING | State.SUSPENDING), Wanted.STOP):
            return _ask(now, transition, State.STOPPING, "its owner stops it")
        case ((State.STARTING | State.RUNNING | State.SUSPENDING), Wanted.PAUSE):
            return _ask(now, transition, State.PAUSING, "its owner pauses it")
        case ((State.STARTING | State.RUNNING | State.SUSPENDING), Wanted.RUN) if _has_run_out(
            now, job.record
        ):
            return _ask(now, transition, State.STOPPING, _out_of_time(job.record))
        case State.STARTING, _ if _runs(job):
            return transition.move(State.RUNNING, job.record.reason, started=_started(job))
        case ((State.STOPPING | State.PAUSING | State.SUSPENDING), _):
            return _ask_again(now, transition)
    return transition


def _has_run_out(now: float, record: JobRecord) -> bool:
    """Whether it has run for its time limit."""
    if record.running_since is None:
        return bool(record.time_limit) and record.ran >= record.time_limit
    return now >= record.limit_reached_at


def _out_of_time(record: JobRecord) -> str:
    return f"it has run for its time limit of {timedelta(seconds=round(record.time_limit))}"


def _ended(now: float, job: ObservedJob) -> float:
    """When its launcher ended: at its last event, if that says that it did; the service may notice later."""
    is_told = job.run is not None and job.run.exit_code is not None and job.progress.heard
    return min(now, job.progress.heard) if is_told else now


def _ran(now: float, job: ObservedJob) -> float:
    """Seconds that it has run, now that its launcher is gone: up to its last event."""
    since, heard = job.record.running_since, job.progress.heard
    if since is None:
        return job.record.ran
    return job.record.ran + max(0.0, min(now, heard if heard > since else now) - since)


def _runs(job: ObservedJob) -> bool:
    """Whether the present launcher has started a worker, or a driver."""
    run = job.run
    return run is not None and run.exit_code is None and (run.began is not None or run.is_driven)


def _started(job: ObservedJob) -> float | None:
    """When its first process was started; None if none was."""
    if job.record.started or job.run is None:
        return job.record.started
    return job.run.began or (job.progress.begun if job.run.is_driven else None)


def _ask(now: float, transition: Transition, to: State, reason: str) -> Transition:
    record = transition.job.record
    request = _request(to, now, 0.0, record.grace)
    return transition.move(to, reason, asked=now, signalled=now).do(Send(record.id, request))


def _request(state: State, asked: float, waited: float, grace: float) -> Request:
    """What a job that is on its way out is asked for; the same again has the same id."""
    if state is not State.STOPPING:
        return Pause(f"pause-{asked}") if waited < PAUSE_PATIENCE else Stop(f"stop-{asked}")
    is_patient = waited < grace + STOP_PATIENCE[0]
    return Stop(f"stop-{asked}") if is_patient else Stop(f"kill-{asked}", at_once=True)


def suspend(now: float, job: ObservedJob, reason: str) -> Transition:
    """Take all devices away from a job that runs, its state saved."""
    return _ask(now, Transition(job), State.SUSPENDING, reason)


def _ask_again(now: float, transition: Transition) -> Transition:
    """A launcher that has just been started may not listen yet; one that does not end needs more."""
    record = transition.job.record
    if now - (record.signalled or 0.0) < AGAIN:
        return transition
    asked = now if record.asked is None else record.asked
    request = _request(record.state, asked, now - asked, record.grace)
    patience = record.grace + STOP_PATIENCE[1]
    if record.state is not State.STOPPING:
        patience += PAUSE_PATIENCE
    is_to_be_killed = now - asked >= patience
    if transition.job.launcher.accepted == request.id and not is_to_be_killed:
        return transition
    after = transition.note(asked=asked, signalled=now)
    return after.do(Kill(record.id) if is_to_be_killed else Send(record.id, request))


# Its launcher is gone.


def _gone(now: float, transition: Transition) -> Transition:
    job = transition.job
    record, launcher = job.record, job.launcher
    if launcher.has_leftovers:
        return transition.do(Sweep(record.id))
    if job.is_behind:
        return transition
    if launcher.identity is None:
        return _never_began(now, transition)
    code, message = _ending(job)
    if code is None:
        return _lost(now, transition, "its launcher was killed")
    if code == ExitCode.SUCCESS:
        return _end(now, transition, State.SUCCEEDED, "its workers have ended with exit code 0", 0, None)
    if code == ExitCode.OUT_OF_RESOURCES:
        return _back(now, transition, f"the machine lacks resources: {message}")
    if code == ExitCode.LEFT:
        return _left(now, transition)
    if code in _SIGNALLED:
        return _lost(now, transition, f"its launcher was ended by a signal (exit code {code})")
    if (missed := _missed(job)) is not None:
        return _lost(now, transition, missed)
    own = job.run.worker_exit_code if job.run is not None else None
    reason = "it could not start" if code == ExitCode.NOT_STARTED else "it ended with an error"
    if own is not None:
        code, reason = own, f"a worker ended with {exit_text(own)}"
    return _end(now, transition, State.FAILED, reason, code, message)


def _missed(job: ObservedJob) -> str | None:
    """Which host of its allocation did not answer, if its launcher gave up for that before it had a world."""
    run, unreachable = job.run, job.progress.unreachable
    if run is None or run.size or run.worker_exit_code != HOST_LOST or not unreachable:
        return None
    host, _, reason = unreachable[-1]
    return f"{host} was not reached ({reason})"


def _never_began(now: float, transition: Transition) -> Transition:
    """Its launcher is gone before it could say who it was."""
    launcher = transition.job.launcher
    if launcher.exit_code is None:  # nobody knows that it was started at all
        return _back(now, transition, "its launcher was not started")
    if launcher.exit_code < 0:
        return _lost(now, transition, "its launcher was killed")
    if launcher.exit_code == ExitCode.OUT_OF_RESOURCES:
        return _back(now, transition, f"the machine lacks resources: {launcher.said}")
    text = f"edt-launch has ended with exit code {launcher.exit_code}: {launcher.said or 'no output'}"
    return _end(now, transition, State.FAILED, "it could not be started", launcher.exit_code, text)


def _ending(job: ObservedJob) -> tuple[int | None, str]:
    """How its launcher has ended: exit code, None if it was killed, and message.

    Its last event may be missing, because the disk was full, for instance. Then its result file counts, or
    its exit code, if that is one of `edt-launch`.
    """
    if job.run is not None and job.run.exit_code is not None:
        return job.run.exit_code, job.run.message
    code = job.launcher.exit_code
    return code if code in _EXIT_CODES else None, job.launcher.message


def _back(now: float, transition: Transition, reason: str, **fields: Any) -> Transition:
    """Where it can be started from again, or where it was to go."""
    transition = _freed(now, transition, reason)
    record = transition.job.record
    fields |= {**WITHOUT_LAUNCHER, "ran": _ran(now, transition.job)}
    match record.state:
        case State.STOPPING:
            is_owners = record.wanted is Wanted.STOP
            reason = "its owner has stopped it" if is_owners else _out_of_time(record)
            return transition.move(State.STOPPED, reason, **fields)
        case State.PAUSING:
            return transition.move(State.PAUSED, "its owner has paused it", **fields)
    return transition.move(State.QUEUED, reason, waiting_since=now, **fields)


def _left(now: float, transition: Transition) -> Transition:
    """All workers were told to leave."""
    job, record = transition.job, transition.job.record
    if job.can_save:
        return _back(now, transition, "its workers have left, their state is saved")
    reason = "its workers have left; it cannot save its work, and begins again"
    counts = {"starts_anew": record.starts_anew + 1, "restarts": record.restarts + 1}
    return _back(now, transition, reason, **counts)


def _lost(now: float, transition: Transition, reason: str) -> Transition:
    """It was ended from outside, or by its host; its newest checkpoint is there to go on from."""
    record = transition.job.record
    if record.state not in (State.STARTING, State.RUNNING):
        return _back(now, transition, reason)
    lost = record.launchers_lost + 1
    most = MAX_LOST if record.max_restarts is None else record.max_restarts
    if lost > most:
        text = f"{reason}, {lost} times; it is started again {most} times at most"
        return _end(now, transition, State.FAILED, f"it was lost {lost} times", None, text)
    counts = {"launchers_lost": lost, "restarts": record.restarts + 1}
    then = "it goes on from its newest checkpoint" if transition.job.can_save else "it begins again"
    return _back(now, transition, f"{reason}; {then}", **counts)


def _end(
    now: float, transition: Transition, to: State, reason: str, exit_code: int | None, failure: str | None
) -> Transition:
    transition = _freed(now, transition, reason)
    fields = {**progress(transition.job), **WITHOUT_LAUNCHER}
    fields |= {"started": _started(transition.job), "ran": _ran(now, transition.job)}
    if failure is not None:  # a job may have written it: PostgreSQL does not take every character
        failure = failure.encode(errors="replace").decode().replace("\0", "?")
    return transition.move(
        to, reason, **fields, exit_code=exit_code, failure=failure, ended=_ended(now, transition.job)
    )


def _freed(now: float, transition: Transition, reason: str) -> Transition:
    record = transition.job.record
    if not record.size:
        return transition
    at = _ended(now, transition.job)
    return transition.do(Remember(AllocationRecord(record.id, record.owner, at, record.size, 0, (), reason)))


# What is known of it.


def progress(job: ObservedJob) -> dict[str, Any]:
    """Columns that follow from its events."""
    record, progress, run = job.record, job.progress, job.run
    return {
        **{name: getattr(progress, name) for name in (*PROGRESS, "speedup")},
        "throughput": _rounded(progress.throughput),
        "can_save": job.can_save,
        # Of these, no launcher knows.
        "restarts": progress.restarts + record.launchers_lost + record.starts_anew,
        "resize_cost": _rounded(progress.resize_cost),
        "start_cost": _rounded(progress.start_cost),
        "launcher_pid": run.pid if run is not None else None,
        "launcher_started": run.started if run is not None else None,
    }


def changed(record: JobRecord, fields: dict[str, Any]) -> dict[str, Any]:
    """Those of the columns that differ from the job's row."""
    return {name: value for name, value in fields.items() if getattr(record, name) != value}


def record_progress(job: ObservedJob) -> Iterator[Note]:
    """Record what a job's events tell, if it is new."""
    is_open = job.record.state not in ENDED and not job.is_hidden
    if not is_open:
        return
    lost = {name: getattr(job.progress, name) for name in LOST}
    if fields := changed(job.record, progress(job) | lost):
        yield Note(job.record.id, fields)


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")
