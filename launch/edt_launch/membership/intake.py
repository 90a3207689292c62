"""The first half of a step of the membership protocol: what an event changes by itself."""

import signal
from dataclasses import replace

from edt_launch.core.history import events
from edt_launch.core.history.exit_codes import signal_name
from edt_launch.membership import protocol
from edt_launch.membership.lateness import learn
from edt_launch.membership.members import (
    GOING,
    START_FAILURES,
    Membership,
    Suspension,
    Turn,
    after_failure,
    after_notice,
)
from edt_launch.membership.protocol import HostLoss, MemberPhase, Resize, Worker
from edt_launch.membership.shortage import over

RETURNED = "finished"
NOT_ELASTIC = "the program has ended without calling an elastic function"
ALL_ENDED = "all processes have ended"

KILLED = 128 + signal.SIGKILL
"""Exit code of a worker that is killed, as a shell tells it."""

TERMINATED = (128 + signal.SIGTERM, -signal.SIGTERM)
"""Exit codes of a worker that SIGTERM has ended: before it can listen, a notice takes this form."""


def apply_event(turn: Turn, event: protocol.Event) -> None:
    """Change the state by an event, and do what has to be done or told at once."""
    match event:
        case protocol.Desired():
            _desire(turn, event)
        case protocol.Ready(worker, progress):
            _ready(turn, worker, progress)
        case protocol.Synced(worker):
            turn.change(worker, has_state=True)
        case protocol.Done(worker):
            turn.change(worker, phase=MemberPhase.DONE)
        case protocol.Leaving(worker, reason):
            _leaving(turn, worker, reason)
        case protocol.Hung(worker, reason):
            end_hung(turn, worker, reason)
        case protocol.Exited():
            _exited(turn, event)
        case protocol.Abort(reason):
            turn.decide_end(events.Finished(1, reason, aborted=True))
        case protocol.Deadlock(reason):
            turn.decide_end(events.Finished(1, reason))
        case protocol.PauseWanted(reason):
            _pause(turn, reason)


def _desire(turn: Turn, wanted: protocol.Desired) -> None:
    """Follow an allocation; what it drops loses its record of failures and notices."""
    if turn.state.limits.resize is Resize.FIXED and turn.state.desired:
        return  # its processes know of those alone with whom they were started
    slots = wanted.slots[: turn.state.limits.max_size]
    keys = {slot.key for slot in slots}
    kept = {key: suspension for key, suspension in turn.state.suspended.items() if key in keys}
    turn.set(desired=slots, suspended=kept)
    if wanted.at_once:
        _end_unwanted(turn)


def _end_unwanted(turn: Turn) -> None:
    """End the members of the world whose slots are gone, if others have the state; these lose them."""
    wanted = {slot.key for slot in turn.state.desired}
    unwanted = [w for w in turn.state.world if w.slot.key not in wanted and w.phase is MemberPhase.ACTIVE]
    if unwanted and any(w.has_state for w in turn.state.world if w.slot.key in wanted):
        turn.let_go(unwanted)
        turn.set(is_torn=True)
        _cut(turn)


def _takes_part(worker: Worker) -> bool:
    return worker.phase not in (*GOING, MemberPhase.DONE)


def _ready(turn: Turn, worker_id: int, progress: int) -> None:
    worker = turn.state.workers.get(worker_id)
    if worker is None or not _takes_part(worker):
        return
    was_lost = worker.phase is MemberPhase.ACTIVE and not turn.state.stop_sent
    if worker.phase is MemberPhase.STARTING:
        learn(turn, worker)
    outcome = turn.state.outcome
    if not turn.state.generation and outcome is not None and outcome.succeeded:
        turn.set(outcome=None)  # the program is elastic: who has ended already is missing
    turn.change(worker_id, phase=MemberPhase.READY, progress=progress)
    if was_lost:
        _cut(turn)


def _cut(turn: Turn) -> None:
    """The world has lost a member: nobody shall wait for it."""
    if others := tuple(w.id for w in turn.state.world if w.phase is MemberPhase.ACTIVE):
        turn.do(protocol.Cut(others, turn.state.generation))


def _leaving(turn: Turn, worker_id: int, reason: str) -> None:
    worker = turn.state.workers.get(worker_id)
    if worker is None or worker.notice is not None or not _takes_part(worker):
        return
    known = turn.state.suspended.get(worker.slot.key)
    _suspend(turn, worker, after_notice(turn.now, known, reason))
    turn.change(worker_id, notice=reason)
    turn.do(events.Leaving(*worker.where, worker.rank, reason))


def _suspend(turn: Turn, worker: Worker, suspension: Suspension) -> None:
    turn.set(suspended={**turn.state.suspended, worker.slot.key: suspension})


def _pause(turn: Turn, reason: str) -> None:
    """All are to leave. Slots are not suspended: whoever starts the job again wants them."""
    for worker in turn.state.workers.values():
        if worker.notice is None and _takes_part(worker):
            turn.change(worker.id, notice=reason)
    turn.set(pausing=reason)


def end_hung(turn: Turn, worker_id: int, reason: str) -> None:
    """Treat a worker that does not get on, because of `reason`, like a dead one."""
    worker = turn.state.workers.get(worker_id)
    if worker is not None and worker.phase not in GOING:
        turn.change(worker_id, phase=MemberPhase.ENDING)
        _lost(turn, worker, KILLED, reason)
        turn.do(protocol.Terminate(worker_id, at_once=True))


def _exited(turn: Turn, exited: protocol.Exited) -> None:
    worker_id, exit_code = exited.worker, exited.exit_code
    worker = turn.state.workers.get(worker_id)
    if worker is None:
        return
    is_noticed = exit_code in TERMINATED and _may_be_noticed(turn.state, worker)
    if is_noticed:
        _leaving(turn, worker_id, "SIGTERM")
    others = {key: other for key, other in turn.state.workers.items() if key != worker_id}
    turn.set(workers=others)
    if is_noticed or worker.phase in GOING:
        if worker.saves:
            turn.decide_end(over(turn.state.limits) if worker.notice is None else _left_last(worker))
        turn.do(events.Left(worker_id))
        return
    early = _ended_early(turn.state, worker) if exit_code == 0 else ""
    if exit_code or early:
        _lost(turn, worker, exit_code, f"{_name(worker)} {early}" if early else "", exited.host_loss)
    else:
        turn.decide_end(events.Finished(0, _how_it_succeeds(turn.state)))


def _may_be_noticed(state: Membership, worker: Worker) -> bool:
    """Whether SIGTERM may be a notice to a worker that cannot listen yet: others go on without it.

    The end of the only worker of a program that is not known to be elastic is the end of that program.
    """
    others = any(w is not worker and w.phase not in GOING for w in state.workers.values())
    is_open = worker.phase is MemberPhase.STARTING and state.outcome is None
    return is_open and (others or state.generation > 0) and state.limits.resize is not Resize.FIXED


def _how_it_succeeds(state: Membership) -> str:
    if state.limits.resize is Resize.FIXED:
        return ALL_ENDED
    return RETURNED if state.generation else NOT_ELASTIC


def _ended_early(state: Membership, worker: Worker) -> str:
    """Why the exit of a worker with code 0 is none that ends a job well; empty if it is."""
    if worker.phase is MemberPhase.DONE:
        return ""
    if state.limits.has_to_train and not _has_returned(state):
        return "exited with code 0 before the training was done"
    if not state.generation:
        is_elastic = any(w.phase is MemberPhase.READY for w in (*state.workers.values(), worker))
        return "ended before it could join" if is_elastic else ""
    if not worker.generation:
        return "ended before it could join"
    return "ended with exit code 0 in the middle of training" if state.is_torn or _at_work(state) else ""


def _at_work(state: Membership) -> bool:
    return any(w.phase is not MemberPhase.DONE for w in state.world)


def _left_last(worker: Worker) -> events.Finished:
    reason = f"{_name(worker)} left ({worker.notice}), the last with the state"
    return events.Finished(1, reason, left=True)


def _name(worker: Worker) -> str:
    return f"rank {worker.rank} on {worker.slot.host}"


def _lost(turn: Turn, worker: Worker, exit_code: int, reason: str, host_loss: HostLoss | None = None) -> None:
    """A worker has died or is as good as dead; the state has it no more, or as one that is being ended."""
    state = turn.state
    known = state.suspended.get(worker.slot.key)
    suspension = after_failure(turn.now, known, host_loss is not HostLoss.UNREACHED)
    failed = events.Failed(*worker.where, worker.rank, exit_code, signal_name(exit_code), reason)
    end = _end_with(state, worker, exit_code, suspension, host_loss)
    if end is not None:
        how = "was lost" if reason else "failed"
        turn.decide_end(events.Finished(1, f"{_name(worker)} {how}{end}"))
        turn.do(failed)
        return
    if worker.generation == state.generation and exit_code != 0:
        turn.set(is_torn=True)
    _suspend(turn, worker, suspension)
    is_tried_again = not _has_returned(state)
    turn.do(replace(failed, retry_after=suspension.until - turn.now) if is_tried_again else failed)
    if worker.phase is MemberPhase.ACTIVE:
        _cut(turn)


def _others_that_start(state: Membership, worker: Worker) -> list[Worker]:
    """The workers of other hosts that have not failed: they may form a world without this one's."""
    others = (w for w in state.workers.values() if w.slot.host != worker.slot.host)
    return [w for w in others if w.slot.key not in state.suspended]


def _works_elsewhere(state: Membership, others: list[Worker]) -> bool:
    """Whether a failure is its host's: on others the program is at the rendezvous, and they are enough."""
    return len(others) >= state.limits.min_size and any(w.phase is MemberPhase.READY for w in others)


def _end_with(
    state: Membership,
    worker: Worker,
    exit_code: int,
    suspension: Suspension,
    host_loss: HostLoss | None,
) -> str | None:
    """When in the job's life a failure ends it, in words that may be empty; None if it does not."""
    if state.limits.resize is Resize.FIXED:
        return ", and the job with it"
    if worker.phase is MemberPhase.DONE:
        return " after training"
    if not state.generation:
        has_begun = host_loss not in (HostLoss.UNREACHED, HostLoss.UNFIT)
        if state.outcome is not None and state.outcome.succeeded and not has_begun:
            return None
        others = _others_that_start(state, worker)
        if others and (host_loss is not None or _works_elsewhere(state, others)):
            return None
        is_early = exit_code == 0 and not state.limits.has_to_train
        was_lost = host_loss is HostLoss.LOST or exit_code in (KILLED, -signal.SIGKILL)
        may_be_chance = state.outcome is None and (is_early or was_lost)
        if may_be_chance and suspension.failures < START_FAILURES:
            return None
        is_elastic = any(w.phase is MemberPhase.READY for w in (*state.workers.values(), worker))
        is_known = is_elastic or host_loss in (HostLoss.LOST, HostLoss.UNREACHED)
        return " before training began" if is_known else ""
    if worker.generation != state.generation:
        return None
    if _has_returned(state) and not _at_work(state):
        return " before its training function returned"
    return None if any(w.has_state for w in state.world) else ", the last that had the state"


def _has_returned(state: Membership) -> bool:
    return state.outcome is not None or any(w.phase is MemberPhase.DONE for w in state.world)
