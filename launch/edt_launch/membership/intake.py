"""The first half of a step of the membership protocol: what an event changes by itself."""

import signal
from dataclasses import replace

from edt_launch.core import events
from edt_launch.membership.lateness import learn
from edt_launch.membership.members import GOING, Membership, changed, decide_end
from edt_launch.membership.protocol import (
    Abort,
    Action,
    Cut,
    Desired,
    Done,
    Event,
    Exited,
    Hung,
    Leaving,
    Pause,
    Phase,
    Ready,
    Slot,
    Synced,
    Terminate,
    Tick,
    Worker,
)
from edt_launch.membership.shortage import over
from edt_launch.membership.suspension import START_FAILURES, Suspension, after_failure, after_notice

RETURNED = "the training function has returned"
NOT_ELASTIC = "the program has ended without calling an elastic function"

ALL_ENDED = "all processes have ended"

KILLED = 128 + signal.SIGKILL
"""Exit code of a worker that is killed, as a shell tells it."""

TERMINATED = (128 + signal.SIGTERM, -signal.SIGTERM)
"""Exit codes of a worker that SIGTERM has ended: before it can listen, a notice takes this form."""


def take_in(now: float, state: Membership, event: Event) -> tuple[Membership, list[Action]]:
    """The state after an event, and what has to be done or told at once."""
    match event:
        case Desired() if state.limits.is_gang and state.desired:
            return state, []  # its processes know of those alone with whom they were started
        case Desired(slots):
            return _desire(state, slots[: state.limits.max_size]), []
        case Ready(worker, progress):
            return _ready(now, state, worker, progress)
        case Synced(worker):
            return changed(state, worker, has_state=True), []
        case Done(worker):
            return changed(state, worker, phase=Phase.DONE), []
        case Leaving(worker, reason):
            return _leaving(now, state, worker, reason)
        case Hung(worker, reason):
            return end_hung(now, state, worker, reason)
        case Exited(worker, exit_code):
            return _exited(now, state, worker, exit_code)
        case Abort(reason):
            return decide_end(state, events.Finished(1, reason, aborted=True)), []
        case Pause(reason):
            return _pause(state, reason), []
        case Tick():
            return state, []


def _desire(state: Membership, slots: tuple[Slot, ...]) -> Membership:
    """Follow an allocation; what it drops loses its record of failures and notices."""
    keys = {slot.key for slot in slots}
    suspended = {key: suspension for key, suspension in state.suspended.items() if key in keys}
    return replace(state, desired=slots, suspended=suspended)


def _ready(now: float, state: Membership, worker: int, progress: int) -> tuple[Membership, list[Action]]:
    known = state.workers.get(worker)
    if known is None or known.phase in (*GOING, Phase.DONE):
        return state, []
    was_lost = known.phase is Phase.ACTIVE and not state.stop_sent
    if known.phase is Phase.STARTING:
        state = learn(now, state, known)
    if not state.generation and state.outcome is not None and state.outcome.succeeded:
        state = replace(state, outcome=None)  # the program is elastic: who has ended already is missing
    state = changed(state, worker, phase=Phase.READY, progress=progress)
    return state, _cut(state) if was_lost else []


def _cut(state: Membership) -> list[Action]:
    """The world has lost a member: nobody shall wait for it."""
    others = tuple(w.id for w in state.world if w.phase is Phase.ACTIVE)
    return [Cut(others, state.generation)] if others else []


def _leaving(now: float, state: Membership, worker_id: int, reason: str) -> tuple[Membership, list[Action]]:
    worker = state.workers.get(worker_id)
    if worker is None or worker.notice is not None or worker.phase in (*GOING, Phase.DONE):
        return state, []
    key = worker.slot.key
    suspension = after_notice(now, state.suspended.get(key), reason)
    state = replace(state, suspended={**state.suspended, key: suspension})
    state = changed(state, worker_id, notice=reason)
    return state, [events.Leaving(*worker.where, worker.rank, reason)]


def _pause(state: Membership, reason: str) -> Membership:
    """All are to leave. Slots are not suspended: whoever starts the job again wants them."""
    for worker in state.workers.values():
        if worker.notice is None and worker.phase not in (*GOING, Phase.DONE):
            state = changed(state, worker.id, notice=reason)
    return replace(state, pausing=reason)


def end_hung(now: float, state: Membership, worker_id: int, reason: str) -> tuple[Membership, list[Action]]:
    """Treat a worker that does not get on, because of `reason`, like a dead one."""
    worker = state.workers.get(worker_id)
    if worker is None or worker.phase in GOING:
        return state, []
    state = changed(state, worker_id, phase=Phase.ENDING)
    state, actions = _lost(now, state, worker, KILLED, reason)
    return state, [*actions, Terminate(worker_id, at_once=True)]


def _exited(now: float, state: Membership, worker_id: int, exit_code: int) -> tuple[Membership, list[Action]]:
    worker = state.workers.get(worker_id)
    if worker is None:
        return state, []
    others = {key: other for key, other in state.workers.items() if key != worker_id}
    gone = replace(state, workers=others)
    if worker.phase in GOING:
        if worker.saves:
            gone = decide_end(gone, over(state) if worker.notice is None else _left_last(worker))
        return gone, [events.Left(worker_id)]
    if _may_be_noticed(state, worker) and exit_code in TERMINATED:
        state, noticed = _leaving(now, state, worker_id, "SIGTERM")
        return replace(gone, suspended=state.suspended), [*noticed, events.Left(worker_id)]
    early = _ended_early(gone, worker) if exit_code == 0 else ""
    if exit_code or early:
        return _lost(now, gone, worker, exit_code, f"{_name(worker)} {early}" if early else "")
    return decide_end(gone, events.Finished(0, _how_it_succeeds(state))), []


def _may_be_noticed(state: Membership, worker: Worker) -> bool:
    """Whether SIGTERM may be a notice to a worker that cannot listen yet."""
    return worker.phase is Phase.STARTING and state.outcome is None and not state.limits.is_gang


def _how_it_succeeds(state: Membership) -> str:
    if state.limits.is_gang:
        return ALL_ENDED
    return RETURNED if state.generation else NOT_ELASTIC


def _ended_early(state: Membership, worker: Worker) -> str:
    """Why the exit of a worker with code 0 is none that ends a job well; empty if it is."""
    if worker.phase is Phase.DONE:
        return ""
    if not state.generation:
        is_elastic = any(w.phase is Phase.READY for w in (*state.workers.values(), worker))
        return "ended before it could join" if is_elastic else ""
    if not worker.generation:
        return "ended before it could join"
    return "ended with exit code 0 in the middle of training" if state.is_torn or _at_work(state) else ""


def _at_work(state: Membership) -> bool:
    """Whether there are members whose elastic function has not returned."""
    return any(w.phase is not Phase.DONE for w in state.world)


def _left_last(worker: Worker) -> events.Finished:
    reason = f"{_name(worker)} left ({worker.notice}), the last with the state"
    return events.Finished(1, reason, left=True)


def _name(worker: Worker) -> str:
    return f"rank {worker.rank} on {worker.slot.host}"


def _lost(
    now: float, state: Membership, worker: Worker, exit_code: int, reason: str
) -> tuple[Membership, list[Action]]:
    """A worker has died or is as good as dead; `state` has it no more, or as one that is being ended."""
    key = worker.slot.key
    suspension = after_failure(now, state.suspended.get(key))
    failed = events.Failed(*worker.where, worker.rank, exit_code, events.signal_name(exit_code), reason)
    end = _end_with(state, worker, exit_code, suspension)
    if end:
        how = "was lost" if reason else "failed"
        return decide_end(state, events.Finished(1, f"{_name(worker)} {how}{end}")), [failed]
    if worker.generation == state.generation and exit_code != 0:
        state = replace(state, is_torn=True)
    state = replace(state, suspended={**state.suspended, key: suspension})
    told = failed if _has_returned(state) else replace(failed, retry_after=suspension.until - now)
    return state, [told, *(_cut(state) if worker.phase is Phase.ACTIVE else [])]


def _end_with(state: Membership, worker: Worker, exit_code: int, suspension: Suspension) -> str:
    """Why the job ends with a worker; empty if it goes on."""
    if state.limits.is_gang:
        return ", and the job with it"
    if worker.phase is Phase.DONE:
        return " after training"
    if not state.generation:
        may_be_chance = state.outcome is None and exit_code in (0, KILLED, -signal.SIGKILL)
        return "" if may_be_chance and suspension.failures < START_FAILURES else " before training began"
    if worker.generation != state.generation:
        return ""
    if _has_returned(state) and not _at_work(state):
        return " before its training function returned"
    return "" if any(w.has_state for w in state.world) else ", the last that had the state"


def _has_returned(state: Membership) -> bool:
    """Whether the elastic function of a member has returned."""
    return state.outcome is not None or any(w.phase is Phase.DONE for w in state.world)
