"""The first half of a step of the membership protocol: what an event changes by itself."""

import signal
from dataclasses import replace

from edt_launch.lateness import learn
from edt_launch.members import GOING, Membership, changed, decide_end
from edt_launch.protocol import (
    Abort,
    Action,
    AtDoor,
    Cut,
    Desired,
    Done,
    Event,
    Exited,
    Failed,
    Finish,
    Hung,
    Leaving,
    Left,
    Noticed,
    Pause,
    Phase,
    Slot,
    Synced,
    Terminate,
    Tick,
    Worker,
)
from edt_launch.suspension import START_FAILURES, after_failure, after_notice

RETURNED = "the training function has returned"
NOT_ELASTIC = "the program has ended without calling an elastic function"

KILLED = 128 + signal.SIGKILL
"""Exit code of a worker that is killed, as a shell tells it."""


def take_in(now: float, state: Membership, event: Event) -> tuple[Membership, list[Action]]:
    """The state after an event, and what has to be done or told at once."""
    match event:
        case Desired(slots):
            return _desire(state, slots[: state.limits.max_size]), []
        case AtDoor(worker, progress):
            return _at_door(now, state, worker, progress)
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
            return decide_end(state, Finish(False, reason)), []
        case Pause(reason):
            return _pause(state, reason), []
        case Tick():
            return state, []


def _desire(state: Membership, slots: tuple[Slot, ...]) -> Membership:
    """Follow an allocation; what it drops loses its record of failures and notices."""
    keys = {slot.key for slot in slots}
    suspended = {key: suspension for key, suspension in state.suspended.items() if key in keys}
    return replace(state, desired=slots, suspended=suspended)


def _at_door(now: float, state: Membership, worker: int, progress: int) -> tuple[Membership, list[Action]]:
    known = state.workers.get(worker)
    if known is None or known.phase in (*GOING, Phase.DONE):
        return state, []
    was_lost = known.phase is Phase.ACTIVE and not state.stop_sent
    if known.phase is Phase.STARTING:
        state = learn(now, state, known)
    state = changed(state, worker, phase=Phase.DOOR, progress=progress)
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
    return state, [Noticed(state.workers[worker_id])]


def _pause(state: Membership, reason: str) -> Membership:
    """All are to leave. Slots are not suspended: whoever starts the job again wants them."""
    for worker in state.workers.values():
        if worker.notice is None and worker.phase not in (*GOING, Phase.DONE):
            state = changed(state, worker.id, notice=reason)
    return replace(state, pausing=reason)


def end_hung(now: float, state: Membership, worker_id: int, reason: str) -> tuple[Membership, list[Action]]:
    """Treat a worker that does not get on, because of `reason`, like a dead one."""
    worker = state.workers.get(worker_id)
    if worker is None or worker.phase in (*GOING, Phase.DONE):
        return state, []
    state = changed(state, worker_id, phase=Phase.ENDING)
    state, actions = _lost(now, state, Failed(worker, KILLED, reason=reason))
    return state, [*actions, Terminate(worker_id, at_once=True)]


def _exited(now: float, state: Membership, worker_id: int, exit_code: int) -> tuple[Membership, list[Action]]:
    worker = state.workers.get(worker_id)
    if worker is None:
        return state, []
    others = {key: other for key, other in state.workers.items() if key != worker_id}
    gone = replace(state, workers=others)
    if worker.phase in GOING:
        if worker.saves:
            reason = f"{_name(worker)} left ({worker.notice}), the last with the state"
            gone = decide_end(gone, Finish(False, reason, left=True))
        return gone, [Left(worker)]
    if exit_code == 0 and state.generation and not worker.generation:
        return _lost(
            now, gone, Failed(worker, exit_code, reason=f"{_name(worker)} ended before it could join")
        )
    if exit_code == 0:
        return decide_end(gone, Finish(True, RETURNED if state.generation else NOT_ELASTIC)), []
    return _lost(now, gone, Failed(worker, exit_code))


def _name(worker: Worker) -> str:
    return f"rank {worker.rank} on {worker.slot.host}"


def _lost(now: float, state: Membership, failed: Failed) -> tuple[Membership, list[Action]]:
    """A worker has died or is as good as dead; `state` has it no more, or as one that is being ended."""
    worker = failed.worker
    where = f"{_name(worker)} {'was lost' if failed.reason else 'failed'}"
    key = worker.slot.key
    suspension = after_failure(now, state.suspended.get(key))
    if worker.phase is Phase.DONE:
        return decide_end(state, Finish(False, f"{where} after training")), [failed]
    is_killed = failed.exit_code in (KILLED, -signal.SIGKILL)
    if state.generation == 0 and not (is_killed and suspension.failures < START_FAILURES):
        return decide_end(state, Finish(False, f"{where} before training began")), [failed]
    if worker.generation == state.generation and _is_state_lost(state):
        return decide_end(state, Finish(False, f"{where}, the last that had the state")), [failed]
    state = replace(state, suspended={**state.suspended, key: suspension})
    actions: list[Action] = [replace(failed, retry_after=suspension.until - now)]
    return state, actions + (_cut(state) if worker.phase is Phase.ACTIVE else [])


def _is_state_lost(state: Membership) -> bool:
    return state.generation > 0 and state.outcome is None and not any(w.has_state for w in state.world)
