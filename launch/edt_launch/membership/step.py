"""Who is in the world, and how it moves towards who should be: the whole protocol as a pure function.

Theory. The allocation says which slots the job should have (`desired`); that is a *level*, not a message,
so a change can come at any moment, any number of times, and only the latest counts. Every worker is in one
phase:

=========  ===================================================  ======================================
phase      meaning                                              leaves it by
=========  ===================================================  ======================================
STARTING   its process runs, it has not reached the rendezvous  `Ready`, exit
READY      outside any world, waiting for an assignment         an assignment, dismissal, exit
ACTIVE     in the world of the generation in force              `Ready` (stopped or lost a peer), exit
DONE       its elastic function has returned                    exit
DEPARTING  told to leave                                        exit, a deadline
ENDING     its process is being ended                           exit
=========  ===================================================  ======================================

The world is formed anew when it differs from what it could be. Newcomers are started first and the survivors
train on until all of them wait at the rendezvous; a removal does not wait for newcomers. Then the active
workers are told to stop; they agree among themselves on the step. When all wait at the rendezvous, the next
generation is assigned from the membership desired *then*, so changes that came in between are already part of
it. A worker that dies simply leaves: the others lose it in their next collective, reach the rendezvous, and
the same rule applies. One that ends with exit code 0 before its function has returned has died, too, unless
all do so and nobody has said that they have to train. A worker that has been told from outside to give up its
slot leaves in the same way as one whose slot the allocation drops, and one that hangs is killed and then
treated like any dead one. When the job is to pause, all of them leave in that way, and nobody is started any
more.

Growth waits until the last world has had a second of its own, so that a storm of changes is coalesced;
removals do not wait, because somebody waits for the devices.

Newcomers that take far longer to the rendezvous than others did are not waited for, and ended in the end
(`edt_launch.membership.lateness`).

At least one worker with the state must be in the next world. Where no desired slot has one, the old
coordinator stays until newcomers have received the state from it, and leaves with the following generation.
"""

from collections.abc import Sequence

from edt_launch.core.history import events
from edt_launch.membership import lateness
from edt_launch.membership.intake import RETURNED, apply_event, end_hung
from edt_launch.membership.members import Membership, Turn
from edt_launch.membership.placement import assign
from edt_launch.membership.protocol import (
    Action,
    Assign,
    Event,
    MemberPhase,
    Start,
    StopWorkers,
    Terminate,
    Worker,
)
from edt_launch.membership.shortage import over, tell

LEAVE_TIMEOUT = 30.0
"""Seconds after which a worker that was told to leave is ended."""

SAVE_TIMEOUT = 600.0
"""The same for one that saves the state, which nobody else has."""

FORMED_ANEW = "formed anew"
"""Why there is a world of as many workers as before: one was replaced, or it could not be formed."""

GROWTH_INTERVAL = 1.0
"""Seconds that a world has for itself before it is stopped only to become larger."""


def step(now: float, state: Membership, event: Event) -> tuple[Membership, list[Action]]:
    """The next state and what to do, in this order, given what happened at a time of a monotonic clock.

    An event of a worker that is gone changes nothing.
    """
    turn = Turn(now, state)
    apply_event(turn, event)
    _reconcile(turn)
    return turn.state, turn.actions


def _reconcile(turn: Turn) -> None:
    state = turn.state
    if state.finished:
        return
    if state.outcome is not None and not state.outcome.succeeded:
        _end_all(turn)
    elif state.outcome is not None or any(w.phase is MemberPhase.DONE for w in state.workers.values()):
        _run_out(turn)
    elif state.pausing is not None and not state.workers:
        turn.decide_end(events.Finished(1, state.pausing, left=True))
        _finish_if_empty(turn)
    elif _is_saving(state):
        _end_overdue(turn)  # what comes then has to begin with what is being saved
    else:
        _move(turn)


def _move(turn: Turn) -> None:
    _dismiss_unwanted(turn)
    _end_late(turn)
    if turn.state.outcome is not None:
        _end_all(turn)
        return
    _end_overdue(turn)
    _start_missing(turn)
    _dismiss_leavers(turn)
    if not _is_saving(turn.state):
        _form(turn)


def _is_saving(state: Membership) -> bool:
    return any(w.saves for w in state.workers.values())


def _dismiss_unwanted(turn: Turn) -> None:
    """Newcomers whose slot has gone again are not waited for."""
    wanted = {slot.key for slot in turn.state.wanted(turn.now)}
    newcomers = (w for w in turn.state.workers.values() if w.generation == 0)
    turn.let_go([w for w in newcomers if w.notice or w.slot.key not in wanted])


def _end_late(turn: Turn) -> None:
    for worker, reason in lateness.overdue(turn.now, turn.state):
        end_hung(turn, worker, reason)
    lateness.tell(turn)


def _end_overdue(turn: Turn) -> None:
    for worker in turn.state.workers.values():
        patience = SAVE_TIMEOUT if worker.saves else LEAVE_TIMEOUT
        if worker.phase is MemberPhase.DEPARTING and turn.now - (worker.dismissed_at or turn.now) >= patience:
            turn.do(Terminate(worker.id))
            turn.change(worker.id, phase=MemberPhase.ENDING)


def _start_missing(turn: Turn) -> None:
    """Start a worker in every wanted slot whose last one, if any, is gone."""
    if turn.state.pausing is not None:
        return
    taken = {worker.slot.key for worker in turn.state.workers.values()}
    for rank, slot in enumerate(turn.state.wanted(turn.now)):
        if slot.key not in taken:
            state = turn.state
            worker = Worker(state.next_id, slot, MemberPhase.STARTING, started_at=turn.now, rank=rank)
            turn.set(workers={**state.workers, worker.id: worker}, next_id=state.next_id + 1)
            turn.do(Start(worker))


def _dismiss_leavers(turn: Turn) -> None:
    """Who has a notice goes as soon as it is out of the world, if the state is safe or cannot be saved."""
    world = turn.state.world
    leavers = [w for w in world if w.notice and w.phase is MemberPhase.READY]
    if not leavers or not _may_leave(turn.state):
        return
    if not any(w.has_state for w in world if not w.notice):
        if any(w.phase is MemberPhase.ACTIVE for w in world):
            return  # the one that is farthest saves the state, and may be still to come
        _choose_saver(turn, leavers)
    turn.let_go([turn.state.workers[w.id] for w in leavers])


def _choose_saver(turn: Turn, candidates: Sequence[Worker]) -> None:
    """The farthest of those who are to go is to save the state."""
    last = max(candidates, key=lambda w: (w.has_state, w.progress, -w.rank))
    turn.change(last.id, saves=True)


def _may_leave(state: Membership) -> bool:
    """Whether workers with a notice may go: someone else has the state, or nobody comes who could take it."""
    stay = [w for w in state.workers.values() if not w.notice]
    has_heir = any(w.has_state for w in state.world if not w.notice)
    return has_heir or not any(
        w.phase in (MemberPhase.STARTING, MemberPhase.READY, MemberPhase.ACTIVE) for w in stay
    )


def _form(turn: Turn) -> None:
    """Stop the world in force, or assign the next one, if it is time."""
    state, world = turn.state, turn.state.world
    target = _target(turn.now, state)
    active = tuple(w.id for w in world if w.phase is MemberPhase.ACTIVE)
    stable = len(active) == len(world)
    hurry = _may_leave(state) and any(w.notice and w.phase is MemberPhase.ACTIVE for w in world)
    if not hurry:
        if world and stable and {w.id for w in target} == {w.id for w in world}:
            turn.set(stop_sent=False, short_since=None, shortage=None)
            return
        if len(target) < state.limits.min_size:
            _wait_for_more(turn)
            return
        turn.set(short_since=None, shortage=None)
    if not active:
        if target:
            _assign(turn, target)
    elif not state.stop_sent and (hurry or not stable or not _is_early(turn.now, state, target)):
        turn.set(stop_sent=True)
        turn.do(StopWorkers(active, state.generation + 1))


def _is_early(now: float, state: Membership, target: list[Worker]) -> bool:
    """Whether the world would only grow and has been formed a moment ago."""
    only_grows = {w.id for w in state.world} < {w.id for w in target}
    return only_grows and now - state.formed_at < GROWTH_INTERVAL


def _target(now: float, state: Membership) -> list[Worker]:
    """The members of the next world, as far as they can be there now."""
    wanted = {slot.key for slot in state.wanted(now)}
    world = state.world
    stay = [w for w in world if w.slot.key in wanted and not w.notice]
    newcomers = [
        w for w in state.workers.values() if w.generation != state.generation or not state.generation
    ]
    ready = [w for w in newcomers if w.phase is MemberPhase.READY]
    needs_donor = any(w.has_state for w in world) and not any(w.has_state for w in stay)
    donors = [w for w in world if w.has_state][:1] if needs_donor else []
    if any(lateness.is_waited_for(now, state, w) for w in newcomers):
        next_world = stay + donors
        is_enough = len(stay) >= state.limits.min_size or len(world) <= len(next_world)
        return next_world if is_enough else world  # nobody leaves yet
    if needs_donor and not (stay or ready):
        return world
    return stay + ready + donors


def _wait_for_more(turn: Turn) -> None:
    """Too few can run. While a world trains, that holds up nothing; otherwise it is told, and has an end."""
    state, world = turn.state, turn.state.world
    is_training = bool(world) and all(w.phase is MemberPhase.ACTIVE for w in world)
    booting = any(lateness.is_waited_for(turn.now, state, w) for w in state.workers.values())
    if not state.generation and booting and len(state.wanted(turn.now)) >= state.limits.min_size:
        turn.set(short_since=None, shortage=None)  # it is only starting
        return
    if is_training or not state.desired or state.pausing is not None:
        return
    since = turn.now if state.short_since is None else state.short_since
    turn.set(short_since=since)
    ready = [w for w in world if w.phase is MemberPhase.READY and w.has_state]
    if turn.now - since < state.limits.shortage_timeout:
        tell(turn, since)
    elif ready:
        _choose_saver(turn, ready)  # the end is decided when it has gone
        turn.let_go(turn.state.workers.values())
    else:
        turn.decide_end(over(state.limits))
        _end_all(turn)


def _assign(turn: Turn, target: list[Worker]) -> None:
    state = turn.state
    generation = state.generation + 1
    assignments = assign(target, state.generation)
    for at in assignments:
        has_state = state.generation == 0 or state.workers[at.worker].has_state
        turn.change(
            at.worker, phase=MemberPhase.ACTIVE, generation=generation, rank=at.rank, has_state=has_state
        )
    size = len(assignments)
    turn.do(Assign(generation, assignments, state.size or None, _reason(state.size, size)))
    chosen = {at.worker for at in assignments}
    turn.let_go([w for w in state.world if w.id not in chosen])
    turn.set(generation=generation, size=size, formed_at=turn.now, stop_sent=False, is_torn=False)


def _reason(previous: int, size: int) -> str:
    if not previous:
        return "first world"
    return "grown" if size > previous else "shrunk" if size < previous else FORMED_ANEW


# The end.


def _end_all(turn: Turn) -> None:
    for worker in turn.state.workers.values():
        if worker.phase is not MemberPhase.ENDING:
            turn.do(Terminate(worker.id))
            turn.change(worker.id, phase=MemberPhase.ENDING)
    _finish_if_empty(turn)


def _run_out(turn: Turn) -> None:
    """Training is over for some: nobody joins any more, and the rest is waited for.

    Members that lost the others on the way through the last step form a world of their own to repeat it.
    Programs that end without having reached an elastic function are left to themselves.
    """
    world = turn.state.world
    turn.let_go([w for w in turn.state.workers.values() if turn.state.generation and w not in world])
    _end_overdue(turn)
    ready = [w for w in world if w.phase is MemberPhase.READY]
    if ready and not any(w.phase is MemberPhase.ACTIVE for w in world):
        _assign(turn, ready)
        for worker in world:
            if worker.phase is MemberPhase.DONE:
                turn.change(worker.id, generation=turn.state.generation)
    _finish_if_empty(turn)


def _finish_if_empty(turn: Turn) -> None:
    if not turn.state.workers:
        outcome = turn.state.outcome or events.Finished(0, RETURNED)
        turn.set(finished=True, outcome=outcome)
        turn.do(outcome)
