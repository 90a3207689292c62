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
all do so. A worker that has been told from outside to give up its slot leaves in the same way as one whose
slot the allocation drops, and one that hangs is killed and then treated like any dead one. When the job is to
pause, all of them leave in that way, and nobody is started any more.

Growth waits until the last world has had a second of its own, so that a storm of changes is coalesced;
removals do not wait, because somebody waits for the devices.

Newcomers that take far longer to the rendezvous than others did are not waited for, and ended in the end
(`edt_launch.membership.lateness`).

At least one worker with the state must be in the next world. Where no desired slot has one, the old
coordinator stays until newcomers have received the state from it, and leaves with the following generation.
"""

from collections.abc import Sequence
from dataclasses import replace

from edt_launch.core import events
from edt_launch.membership import lateness
from edt_launch.membership.intake import RETURNED, end_hung, take_in
from edt_launch.membership.members import Membership, changed, decide_end, let_go
from edt_launch.membership.placement import assign
from edt_launch.membership.protocol import (
    Action,
    Assign,
    Event,
    Phase,
    Start,
    Stop,
    Terminate,
    Worker,
)
from edt_launch.membership.shortage import over, waiting

LEAVE_TIMEOUT = 30.0
"""Seconds after which a worker that was told to leave is ended."""

SAVE_TIMEOUT = 600.0
"""The same for one that saves the state, which nobody else has."""

GROWTH_INTERVAL = 1.0
"""Seconds that a world has for itself before it is stopped only to become larger."""


def step(now: float, state: Membership, event: Event) -> tuple[Membership, list[Action]]:
    """The next state and what to do, given what happened.

    Args:
        now: seconds of a monotonic clock.
        state: the state so far.
        event: what happened. An event of a worker that is gone changes nothing.

    Returns:
        The new state, and the actions in the order in which to carry them out.
    """
    state, actions = take_in(now, state, event)
    state, more = _reconcile(now, state)
    return state, actions + more


def _reconcile(now: float, state: Membership) -> tuple[Membership, list[Action]]:
    if state.finished:
        return state, []
    if state.outcome is not None and not state.outcome.succeeded:
        return _end_all(state)
    if state.outcome is not None or any(w.phase is Phase.DONE for w in state.workers.values()):
        return _run_out(now, state)
    if state.pausing is not None and not state.workers:
        return _finish_if_empty(decide_end(state, events.Finished(1, state.pausing, left=True)), [])
    if any(w.saves for w in state.workers.values()):
        return _end_overdue(now, state)  # what comes then has to begin with what is being saved
    state, actions = _dismiss_unwanted(now, state)
    state, late = _end_late(now, state)
    actions += late
    if state.outcome is not None:
        return _end_all(state, actions)
    state, ended = _end_overdue(now, state)
    state, started = _start_missing(now, state)
    state, released = _dismiss_leavers(now, state)
    if any(w.saves for w in state.workers.values()):
        return state, actions + ended + started + released
    state, formed = _form(now, state)
    return state, actions + ended + started + released + formed


def _dismiss_unwanted(now: float, state: Membership) -> tuple[Membership, list[Action]]:
    """Newcomers whose slot has gone again are not waited for."""
    wanted = {slot.key for slot in state.wanted(now)}
    newcomers = (w for w in state.workers.values() if w.generation == 0)
    unwanted = [w for w in newcomers if w.notice or w.slot.key not in wanted]
    return let_go(now, state, unwanted)


def _end_late(now: float, state: Membership) -> tuple[Membership, list[Action]]:
    """Tell of newcomers that take long, and end those that take too long."""
    actions: list[Action] = []
    for worker, reason in lateness.overdue(now, state):
        state, ended = end_hung(now, state, worker, reason)
        actions += ended
    state, told = lateness.tell(now, state)
    return state, [*actions, *told]


def _end_overdue(now: float, state: Membership) -> tuple[Membership, list[Action]]:
    """End workers that were told to leave and are still there."""
    actions: list[Action] = []
    for worker in state.workers.values():
        patience = SAVE_TIMEOUT if worker.saves else LEAVE_TIMEOUT
        if worker.phase is Phase.DEPARTING and now - (worker.dismissed_at or now) >= patience:
            actions.append(Terminate(worker.id))
            state = changed(state, worker.id, phase=Phase.ENDING)
    return state, actions


def _start_missing(now: float, state: Membership) -> tuple[Membership, list[Action]]:
    """Start a worker in every wanted slot whose last one, if any, is gone."""
    if state.pausing is not None:
        return state, []
    taken = {worker.slot.key for worker in state.workers.values()}
    actions: list[Action] = []
    for rank, slot in enumerate(state.wanted(now)):
        if slot.key not in taken:
            worker = Worker(state.next_id, slot, Phase.STARTING, started_at=now, rank=rank)
            state = replace(state, workers={**state.workers, worker.id: worker}, next_id=state.next_id + 1)
            actions.append(Start(worker))
    return state, actions


def _dismiss_leavers(now: float, state: Membership) -> tuple[Membership, list[Action]]:
    """Who has a notice goes as soon as it is out of the world, if the state is safe or cannot be saved."""
    leavers = [w for w in state.world if w.notice and w.phase is Phase.READY]
    if not leavers or not _may_leave(state):
        return state, []
    if any(w.has_state for w in state.world if not w.notice):
        return let_go(now, state, leavers)
    if any(w.phase is Phase.ACTIVE for w in state.world):
        return state, []  # the one that is farthest saves the state, and may be still to come
    state = _with_saver(state, leavers)
    return let_go(now, state, [state.workers[w.id] for w in leavers])


def _with_saver(state: Membership, candidates: Sequence[Worker]) -> Membership:
    """The farthest of those who are to go is to save the state."""
    last = max(candidates, key=lambda w: (w.has_state, w.progress, -w.rank))
    return changed(state, last.id, saves=True)


def _may_leave(state: Membership) -> bool:
    """Whether workers with a notice may go: someone else has the state, or nobody comes who could take it."""
    stay = [w for w in state.workers.values() if not w.notice]
    has_heir = any(w.has_state for w in state.world if not w.notice)
    return has_heir or not any(w.phase in (Phase.STARTING, Phase.READY, Phase.ACTIVE) for w in stay)


def _form(now: float, state: Membership) -> tuple[Membership, list[Action]]:
    """Stop the world in force, or assign the next one, if it is time."""
    world = state.world
    target = _target(now, state)
    active = tuple(w.id for w in world if w.phase is Phase.ACTIVE)
    stable = len(active) == len(world)
    hurry = _may_leave(state) and any(w.notice and w.phase is Phase.ACTIVE for w in world)
    if not hurry:
        if world and stable and {w.id for w in target} == {w.id for w in world}:
            return replace(state, stop_sent=False, short_since=None, shortage=None), []
        if len(target) < state.limits.min_size:
            return _wait_for_more(now, state)
        state = replace(state, short_since=None, shortage=None)
    if not active:
        return _assign(now, state, target) if target else (state, [])
    if state.stop_sent or (stable and not hurry and _is_early(now, state, target)):
        return state, []
    return replace(state, stop_sent=True), [Stop(active, state.generation + 1)]


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
    ready = [w for w in newcomers if w.phase is Phase.READY]
    booting = [w for w in newcomers if lateness.is_waited_for(now, state, w)]
    needs_donor = any(w.has_state for w in world) and not any(w.has_state for w in stay)
    donors = [w for w in world if w.has_state][:1] if needs_donor else []
    if booting:
        enough = len(stay) >= state.limits.min_size or not world
        return stay + donors if enough else _keep(world, stay + donors)
    if needs_donor:
        return stay + ready + donors if stay or ready else world
    return stay + ready


def _keep(world: list[Worker], stay: list[Worker]) -> list[Worker]:
    """Too few would stay until the newcomers are ready: nobody leaves yet."""
    return world if len(world) > len(stay) else stay


def _wait_for_more(now: float, state: Membership) -> tuple[Membership, list[Action]]:
    """Too few can run. While a world trains, that holds up nothing; otherwise it is told, and has an end."""
    world = state.world
    is_training = bool(world) and all(w.phase is Phase.ACTIVE for w in world)
    booting = any(lateness.is_waited_for(now, state, w) for w in state.workers.values())
    is_starting = not state.generation and booting and len(state.wanted(now)) >= state.limits.min_size
    if is_starting:
        return replace(state, short_since=None, shortage=None), []
    if is_training or not state.desired or state.pausing is not None:
        return state, []
    since = now if state.short_since is None else state.short_since
    state = replace(state, short_since=since)
    if now - since < state.limits.shortage_timeout:
        return waiting(now, state)
    ready = [w for w in world if w.phase is Phase.READY and w.has_state]
    if not ready:
        return _end_all(decide_end(state, over(state)))
    state = _with_saver(state, ready)  # the end is decided when it has gone
    return let_go(now, state, state.workers.values())


def _assign(now: float, state: Membership, target: list[Worker]) -> tuple[Membership, list[Action]]:
    previous = state.world
    generation = state.generation + 1
    assignments = assign(target, state.generation)
    for at in assignments:
        has_state = state.generation == 0 or state.workers[at.worker].has_state
        changes = {"generation": generation, "rank": at.rank, "has_state": has_state}
        state = changed(state, at.worker, phase=Phase.ACTIVE, **changes)
    chosen = {at.worker for at in assignments}
    state, dismissed = let_go(now, state, [w for w in previous if w.id not in chosen])
    action = Assign(generation, assignments, state.size or None, _reason(state.size, len(assignments)))
    state = replace(state, generation=generation, size=len(assignments), formed_at=now)
    state = replace(state, stop_sent=False, is_torn=False)
    return state, [action, *dismissed]


def _reason(previous: int, size: int) -> str:
    if not previous:
        return "first world"
    return "grown" if size > previous else "shrunk" if size < previous else "formed anew"


# The end.


def _end_all(state: Membership, before: Sequence[Action] = ()) -> tuple[Membership, list[Action]]:
    """End every process, then finish; `before` is what has to be done first."""
    living = [w for w in state.workers.values() if w.phase is not Phase.ENDING]
    actions: list[Action] = [*before, *(Terminate(worker.id) for worker in living)]
    for worker in living:
        state = changed(state, worker.id, phase=Phase.ENDING)
    return _finish_if_empty(state, actions)


def _run_out(now: float, state: Membership) -> tuple[Membership, list[Action]]:
    """Training is over for some: nobody joins any more, and the rest is waited for.

    Members that lost the others on the way through the last step form a world of their own to repeat it.
    Programs that end without having reached an elastic function are left to themselves.
    """
    world = state.world
    newcomers = [w for w in state.workers.values() if w not in world] if state.generation else []
    state, actions = let_go(now, state, newcomers)
    state, overdue = _end_overdue(now, state)
    actions += overdue
    ready = [w for w in world if w.phase is Phase.READY]
    if ready and not any(w.phase is Phase.ACTIVE for w in world):
        finished = [w for w in world if w.phase is Phase.DONE]
        state, assigned = _assign(now, state, ready)
        for worker in finished:
            state = changed(state, worker.id, generation=state.generation)
        actions += assigned
    return _finish_if_empty(state, actions)


def _finish_if_empty(state: Membership, actions: list[Action]) -> tuple[Membership, list[Action]]:
    if state.workers:
        return state, actions
    outcome = state.outcome or events.Finished(0, RETURNED)
    return replace(state, finished=True, outcome=outcome), [*actions, outcome]
