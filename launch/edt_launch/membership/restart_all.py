"""Worlds that are replaced as a whole: the protocol of programs that know nothing of resizes.

Theory. Every worker is started for one generation and one rank in it. A world is never changed; another one
takes its place:

=========  ====================================================  =======================================
phase      meaning                                               leaves it by
=========  ====================================================  =======================================
STARTING   its process runs, it is not held anywhere             `Ready`, exit
READY      it stands at the gate (`init_process_group`), and     its generation is opened
           has touched no device yet
ACTIVE     it has been let through the gate                      exit
ENDING     its process is being ended                            exit
=========  ====================================================  =======================================

The generation *in force* has the devices. The *next* one is started beside it when the slots change, as soon
as it is known that the program's workers stop at the gate; those of a program without a gate are started when
the old ones are gone. When all of the next generation stand at the gate, the workers in force are told that a
resize is due; rank 0 holds at the first point after a checkpoint of its own. Then all of them are ended, and
when the last is gone, the next generation is opened. A change that comes in between only replaces the next
generation.

A resize waits for a checkpoint: one that takes slots away for `grace` seconds, one that only adds some for as
long as it takes, or for `FIRST_CHECKPOINT_TIMEOUT` if the program has not saved anything yet. A world that
has lost a member is ended at once. Ends by an error of the program are counted, against `max_restarts`;
resizes and lost hosts are not.
"""

from collections.abc import Sequence
from math import inf

from edt_launch.core.history import events
from edt_launch.membership import protocol
from edt_launch.membership.generations import Generations, GenerationsTurn, fit
from edt_launch.membership.intake import ALL_ENDED
from edt_launch.membership.members import Membership
from edt_launch.membership.protocol import (
    Action,
    Admit,
    Event,
    MemberPhase,
    Open,
    Slot,
    Start,
    StopWorkers,
    Worker,
)
from edt_launch.membership.shortage import over, tell
from edt_launch.membership.world_failures import judge, take_exit

RESIZE_GRACE = 2.0
"""Seconds that a worker has after SIGTERM when another takes its place."""

FIRST_CHECKPOINT_TIMEOUT = 600.0
"""Seconds that a world which would only grow has for its first checkpoint."""


def step(now: float, state: Membership, event: Event) -> tuple[Membership, list[Action]]:
    """The next state and what to do, in this order, given what happened at a time of a monotonic clock."""
    assert isinstance(state, Generations)
    turn = GenerationsTurn(now, state)
    _apply(turn, event)
    _reconcile(turn)
    return turn.state, turn.actions


def _apply(turn: GenerationsTurn, event: Event) -> None:
    state = turn.state
    match event:
        case protocol.Desired(slots):
            keys = {slot.key for slot in slots}
            kept = {key: known for key, known in state.suspended.items() if key in keys}
            turn.set(desired=slots, suspended=kept)
        case protocol.Ready(worker_id):
            turn.set(has_gate=True)
            if (worker := state.workers.get(worker_id)) is not None and worker.phase is MemberPhase.STARTING:
                turn.change(worker_id, phase=MemberPhase.READY)
                if worker.generation == state.generation:
                    _admit(turn, worker)
                    if state.stop_sent:
                        turn.do(StopWorkers((worker_id,), state.newest))
        case protocol.Saving(worker, is_saving):
            saving = state.saving | {worker} if is_saving else state.saving - {worker}
            turn.set(saving=saving, has_saved=state.has_saved or not is_saving)
        case protocol.Held(worker_id):
            holder = state.workers.get(worker_id)
            if holder is not None and holder.generation == state.generation:
                turn.set(holder=worker_id)
        case protocol.Exited():
            take_exit(turn, event)
        case protocol.Abort(reason):
            turn.decide_end(events.Finished(1, reason, aborted=True))
        case protocol.PauseWanted(reason):
            turn.set(pausing=reason)


def _admit(turn: GenerationsTurn, worker: Worker) -> None:
    turn.do(Admit(worker.id, worker.generation))
    turn.change(worker.id, phase=MemberPhase.ACTIVE)


# Towards the world that is wanted.


def _reconcile(turn: GenerationsTurn) -> None:
    state = turn.state
    if state.finished:
        return
    if state.outcome is not None:
        turn.end(state.workers.values(), None if _is_over(state) else state.limits.end_grace)
        _finish_if_empty(turn)
    elif state.pausing is not None:
        _pause(turn)
    elif state.is_torn and not state.in_force:
        judge(turn)
        _reconcile(turn)
    elif state.returned and not state.is_torn:
        turn.discard()
        _release_holder(turn)  # the others train on to the end
        if not turn.state.in_force:
            turn.decide_end(events.Finished(0, ALL_ENDED))
        _finish_if_empty(turn)
    else:
        _move(turn)


def _is_over(state: Generations) -> bool:
    return state.outcome is not None and state.outcome.succeeded


def _finish_if_empty(turn: GenerationsTurn) -> None:
    if not turn.state.workers and turn.state.outcome is not None:
        turn.set(finished=True)
        turn.do(turn.state.outcome)


def _pause(turn: GenerationsTurn) -> None:
    """All are to leave, at a checkpoint if one comes in time."""
    turn.discard()
    _become_due(turn)
    if _may_cut(turn, shrinks=True):
        turn.end(turn.state.in_force, RESIZE_GRACE)
    if not turn.state.workers:
        turn.decide_end(events.Finished(1, turn.state.pausing or "", left=True))
        _finish_if_empty(turn)


def _release_holder(turn: GenerationsTurn) -> None:
    """Let rank 0 go on where it holds for a resize."""
    if turn.state.holder is not None:
        turn.do(Admit(turn.state.holder, turn.state.generation))
        turn.set(holder=None)


def _move(turn: GenerationsTurn) -> None:
    state = turn.state
    target = fit(state.wanted(turn.now), state.limits)
    now_in_force = () if state.is_torn else state.lineups.get(state.generation, ())
    is_same = {slot.key for slot in target} == {slot.key for slot in now_in_force}
    if state.is_prepared and (is_same or _keys(state.lineups[state.newest]) != _keys(target)):
        turn.discard()
    if is_same and target:
        _release_holder(turn)
        turn.set(due_since=None, stop_sent=False, short_since=None, shortage=None)
        return
    if state.is_torn:
        turn.end(state.in_force, RESIZE_GRACE if state.has_chance else state.limits.end_grace)
        if not state.has_chance:
            return
    if len(target) < max(1, state.limits.min_size):
        _wait_for_more(turn, is_training=bool(now_in_force))
        return
    turn.set(short_since=None, shortage=None)
    is_shrink = not set(_keys(now_in_force)) <= set(_keys(target))
    if state.due_since is None and now_in_force and not state.limits.resizes_at_once:
        limit = _patience(state, is_shrink)
        turn.do(events.ResizeDue(len(now_in_force), len(target), None if limit == inf else limit))
    _become_due(turn, tell_workers=False)
    if not turn.state.is_prepared and (not turn.state.in_force or turn.state.has_gate):
        _begin(turn, target)
    if now_in_force and _is_ready(turn.state):
        _become_due(turn)
    if now_in_force and _may_cut(turn, is_shrink):
        turn.end(turn.state.in_force, RESIZE_GRACE)
    if not turn.state.in_force:
        _open(turn)


def _keys(slots: Sequence[Slot]) -> list[tuple[str, str]]:
    return [slot.key for slot in slots]


def _is_ready(state: Generations) -> bool:
    """Whether the next generation waits at the gate; one that nobody can hold there is not started yet."""
    if not state.is_prepared:
        return True
    size = len(state.lineups[state.newest])
    return sum(w.phase is MemberPhase.READY for w in state.next) == size


def _become_due(turn: GenerationsTurn, tell_workers: bool = True) -> None:
    """The world in force is to be replaced; its workers hold when they can, once they are told."""
    state = turn.state
    if state.due_since is None:
        turn.set(due_since=turn.now)
    members = tuple(w.id for w in state.in_force if w.phase in (MemberPhase.ACTIVE, MemberPhase.READY))
    if tell_workers and members and not state.stop_sent:
        turn.set(stop_sent=True)
        turn.do(StopWorkers(members, state.newest))


def _may_cut(turn: GenerationsTurn, shrinks: bool) -> bool:
    """Whether the world in force may be ended now."""
    state = turn.state
    if not state.in_force or (not shrinks and not _is_ready(state)):
        return False
    if state.holder is not None and not state.saving and _is_ready(state):
        return True
    if state.limits.resizes_at_once and _is_ready(state):
        return True
    return state.due_since is not None and turn.now - state.due_since >= _patience(state, shrinks)


def _patience(state: Generations, shrinks: bool) -> float:
    """Seconds for which a resize waits for a checkpoint at most."""
    return state.limits.grace if shrinks else inf if state.has_saved else FIRST_CHECKPOINT_TIMEOUT


def _wait_for_more(turn: GenerationsTurn, is_training: bool) -> None:
    """Too few can run. A world that trains goes on; else this is reported, and times out."""
    state = turn.state
    if is_training or not state.desired:
        return
    since = turn.now if state.short_since is None else state.short_since
    turn.set(short_since=since)
    if turn.now - since < state.limits.shortage_timeout:
        tell(turn, since)
    else:
        turn.decide_end(over(state.limits))
        turn.end(turn.state.workers.values(), RESIZE_GRACE)
        _finish_if_empty(turn)


def _begin(turn: GenerationsTurn, slots: tuple[Slot, ...]) -> None:
    """Start the workers of another generation."""
    state = turn.state
    number, workers = state.newest + 1, dict(state.workers)
    first, attempt = state.next_id, state.attempt + (state.is_torn and not state.is_host_lost)
    for rank, slot in enumerate(slots):
        worker = Worker(
            first + rank, slot, MemberPhase.STARTING, turn.now, rank, generation=number, attempt=attempt
        )
        workers[worker.id] = worker
    lineups = {state.generation: state.lineups.get(state.generation, ()), number: slots}
    turn.set(workers=workers, next_id=first + len(slots), newest=number, lineups=lineups)
    turn.do(*(Start(workers[first + rank]) for rank in range(len(slots))))


def _open(turn: GenerationsTurn) -> None:
    """Nobody of an older generation is left: the next one is in force."""
    state = turn.state
    if not state.is_prepared:
        return
    number, before = state.newest, state.size
    size = len(state.lineups[number])
    reason = _reason(before, size, any(w.attempt for w in state.next))
    turn.set(
        generation=number,
        size=size,
        formed_at=turn.now,
        holder=None,
        stop_sent=False,
        due_since=None,
        has_saved=False,
        returned=0,
        lineups={number: state.lineups[number]},
    )
    members = turn.state.in_force
    turn.do(Open(number, {w.id: w.rank for w in members}, before or None, reason))
    for worker in members:
        if worker.phase is MemberPhase.READY:
            _admit(turn, worker)


def _reason(before: int, size: int, has_failed: bool) -> str:
    if not before:
        return "first world"
    if before == size:
        return "started again after a failure" if has_failed else "formed anew"
    return "grown" if size > before else "shrunk"
