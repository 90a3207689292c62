"""Who is in the world, and how it moves towards who should be: the whole protocol as a pure function.

Theory. The allocation says which slots the job should have (`desired`); that is a *level*, not a message,
so a change can come at any moment, any number of times, and only the latest counts. Every worker is in one
phase:

=========  ==================================================  ======================================
phase      meaning                                             leaves it by
=========  ==================================================  ======================================
STARTING   its process runs, it has not reached the door       `AtDoor`, exit
DOOR       outside any world, waiting for an assignment        an assignment, dismissal, exit
ACTIVE     in the world of the generation in force             `AtDoor` (stopped or lost a peer), exit
DONE       its elastic function has returned                   exit
DEPARTING  told to leave                                       exit, a deadline
ENDING     its process is being ended                          exit
=========  ==================================================  ======================================

The world is formed anew when it differs from what it could be. Newcomers are started first and the survivors
train on until all of them stand at the door; a removal does not wait for newcomers. Then the active workers
are told to stop; they agree among themselves on the step. When all stand at the door, the next generation is
assigned from the membership desired *then*, so changes that came in between are already part of it. A worker
that dies simply leaves: the others lose it in their next collective, come to the door, and the same rule
applies.

At least one worker with the state must be in the next world. Where no desired slot has one, the old
coordinator stays until newcomers have received the state from it, and leaves with the following generation.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf

from edt_launch.placement import place
from edt_launch.protocol import (
    Abort,
    Action,
    Assign,
    AtDoor,
    Desired,
    Dismiss,
    Done,
    Event,
    Exited,
    Failed,
    Finish,
    Left,
    Phase,
    Slot,
    Start,
    Stop,
    Synced,
    Terminate,
    Tick,
    Worker,
)

_GOING = (Phase.DEPARTING, Phase.ENDING)
_RETURNED = "the training function has returned"
_NOT_ELASTIC = "the program has ended without calling an elastic function"

SUSPENSION = 5.0
"""Seconds for which a slot is left alone after its first failure; doubles with every further one."""

SLOT_FAILURES = 4
"""Failures after which a slot is not tried again, unless the allocation drops it and shows it anew."""

FORGET = 600.0
"""Seconds after the end of a suspension for which a slot's failures are remembered."""

LEAVE_TIMEOUT = 30.0
"""Seconds after which a worker that was told to leave is ended."""


@dataclass(frozen=True)
class Suspension:
    """A slot that is left alone for a while because workers failed in it."""

    failures: int
    until: float


@dataclass(frozen=True)
class Limits:
    """The job's bounds: workers, and seconds that the slow are waited for."""

    min_size: int
    max_size: int
    start_timeout: float = 300.0
    """Seconds after its start for which a newcomer may hold up the others of the same change."""
    shortage_timeout: float = 600.0
    """Seconds for which survivors wait when fewer than `min_size` workers can run."""


@dataclass(frozen=True)
class Membership:
    """The state of the protocol."""

    limits: Limits
    desired: tuple[Slot, ...] = ()
    workers: Mapping[int, Worker] = field(default_factory=dict)
    generation: int = 0
    size: int = 0
    """Workers that the generation in force was formed of."""
    stop_sent: bool = False
    suspended: Mapping[tuple[str, str], Suspension] = field(default_factory=dict)
    next_id: int = 0
    short_since: float | None = None
    outcome: "Finish | None" = None
    """Set once the end is decided; `Finish` is issued when the last worker has gone."""
    finished: bool = False

    @property
    def world(self) -> list[Worker]:
        """The members of the generation in force that are still there, by rank."""
        members = [w for w in self.workers.values() if self.generation and w.generation == self.generation]
        return sorted((w for w in members if w.phase not in _GOING), key=lambda w: w.rank)


def step(now: float, state: Membership, event: Event) -> tuple[Membership, list[Action]]:
    """The next state and what to do, given what happened.

    Args:
        now: seconds of a monotonic clock.
        state: the state so far.
        event: what happened. An event of a worker that is gone changes nothing.

    Returns:
        The new state, and the actions in the order in which to carry them out.
    """
    state, actions = _take_in(now, state, event)
    state, more = _reconcile(now, state)
    return state, actions + more


# Taking in what happened.


def _take_in(now: float, state: Membership, event: Event) -> tuple[Membership, list[Action]]:
    match event:
        case Desired(slots):
            return _desire(state, slots[: state.limits.max_size]), []
        case AtDoor(worker, progress):
            return _at_door(state, worker, progress), []
        case Synced(worker):
            return _set(state, worker, has_state=True), []
        case Done(worker):
            return _set(state, worker, phase=Phase.DONE), []
        case Exited(worker, exit_code):
            return _exited(now, state, worker, exit_code)
        case Abort(reason):
            return _decide_end(state, Finish(False, reason)), []
        case Tick():
            return state, []


def _desire(state: Membership, slots: tuple[Slot, ...]) -> Membership:
    """Follow an allocation; what it drops loses its record of failures."""
    keys = {slot.key for slot in slots}
    suspended = {key: suspension for key, suspension in state.suspended.items() if key in keys}
    return replace(state, desired=slots, suspended=suspended)


def _at_door(state: Membership, worker: int, progress: int) -> Membership:
    known = state.workers.get(worker)
    if known is None or known.phase in (*_GOING, Phase.DONE):
        return state
    return _set(state, worker, phase=Phase.DOOR, progress=progress)


def _exited(now: float, state: Membership, worker_id: int, exit_code: int) -> tuple[Membership, list[Action]]:
    worker = state.workers.get(worker_id)
    if worker is None:
        return state, []
    others = {key: other for key, other in state.workers.items() if key != worker_id}
    gone = replace(state, workers=others)
    if worker.phase in _GOING:
        return gone, [Left(worker)]
    if exit_code == 0:
        return _decide_end(gone, Finish(True, _RETURNED if state.generation else _NOT_ELASTIC)), []
    failed = Failed(worker, exit_code)
    where = f"rank {worker.rank} on {worker.slot.host}"
    if worker.phase is Phase.DONE:
        return _decide_end(gone, Finish(False, f"{where} failed after training")), [failed]
    if state.generation == 0:
        return _decide_end(gone, Finish(False, f"{where} failed before training began")), [failed]
    if worker.generation == state.generation and not any(w.has_state for w in gone.world):
        return _decide_end(gone, Finish(False, f"{where} failed, the last that had the state")), [failed]
    suspension = _suspension(now, gone.suspended.get(worker.slot.key))
    suspended = replace(gone, suspended={**gone.suspended, worker.slot.key: suspension})
    return suspended, [replace(failed, retry_after=suspension.until - now)]


def _suspension(now: float, last: Suspension | None) -> Suspension:
    """What becomes of a slot in which a worker has failed now."""
    failures = 1 + (last.failures if last and now - last.until < FORGET else 0)
    seconds = SUSPENSION * 2 ** (failures - 1) if failures < SLOT_FAILURES else inf
    return Suspension(failures, now + seconds)


def _decide_end(state: Membership, outcome: Finish) -> Membership:
    """Decide how the job ends; a failure overrules success, the first failure overrules later ones."""
    if state.outcome is None or (state.outcome.succeeded and not outcome.succeeded):
        return replace(state, outcome=outcome)
    return state


def _set(state: Membership, worker_id: int, **changes: object) -> Membership:
    worker = state.workers.get(worker_id)
    if worker is None:
        return state
    return replace(state, workers={**state.workers, worker_id: replace(worker, **changes)})  # type: ignore[arg-type]


# Moving towards what is desired.


def _reconcile(now: float, state: Membership) -> tuple[Membership, list[Action]]:
    if state.finished:
        return state, []
    if state.outcome is not None and not state.outcome.succeeded:
        return _end_all(state)
    if state.outcome is not None or any(w.phase is Phase.DONE for w in state.workers.values()):
        return _run_out(now, state)
    state, actions = _dismiss_unwanted(now, state)
    state, ended = _end_overdue(now, state)
    state, started = _start_missing(now, state)
    state, formed = _form(now, state)
    return state, actions + ended + started + formed


def _wanted(now: float, state: Membership) -> tuple[Slot, ...]:
    """The desired slots that are not suspended."""
    free = (s for s in state.desired if s.key not in state.suspended or state.suspended[s.key].until <= now)
    return tuple(free)


def _dismiss_unwanted(now: float, state: Membership) -> tuple[Membership, list[Action]]:
    """Newcomers whose slot has gone again are not waited for."""
    wanted = {slot.key for slot in _wanted(now, state)}
    unwanted = [w for w in state.workers.values() if w.generation == 0 and w.slot.key not in wanted]
    return _let_go(now, state, unwanted)


def _let_go(now: float, state: Membership, workers: Iterable[Worker]) -> tuple[Membership, list[Action]]:
    """Tell those at the door to leave; who cannot be told is ended."""
    actions: list[Action] = []
    for worker in workers:
        if worker.phase is Phase.DOOR:
            actions.append(Dismiss(worker.id))
            state = _set(state, worker.id, phase=Phase.DEPARTING, dismissed_at=now)
        elif worker.phase in (Phase.STARTING, Phase.ACTIVE):
            actions.append(Terminate(worker.id))
            state = _set(state, worker.id, phase=Phase.ENDING)
    return state, actions


def _end_overdue(now: float, state: Membership) -> tuple[Membership, list[Action]]:
    """End workers that were told to leave and are still there."""
    actions: list[Action] = []
    for worker in state.workers.values():
        if worker.phase is Phase.DEPARTING and now - (worker.dismissed_at or now) >= LEAVE_TIMEOUT:
            actions.append(Terminate(worker.id))
            state = _set(state, worker.id, phase=Phase.ENDING)
    return state, actions


def _start_missing(now: float, state: Membership) -> tuple[Membership, list[Action]]:
    """Start a worker in every wanted slot whose last one, if any, is gone."""
    taken = {worker.slot.key for worker in state.workers.values()}
    actions: list[Action] = []
    for rank, slot in enumerate(_wanted(now, state)):
        if slot.key not in taken:
            worker = Worker(state.next_id, slot, Phase.STARTING, started_at=now, rank=rank)
            state = replace(state, workers={**state.workers, worker.id: worker}, next_id=state.next_id + 1)
            actions.append(Start(worker))
    return state, actions


def _form(now: float, state: Membership) -> tuple[Membership, list[Action]]:
    """Stop the world in force, or assign the next one, if it is time."""
    world = state.world
    target = _target(now, state)
    stable = all(w.phase is Phase.ACTIVE for w in world)
    if world and stable and {w.id for w in target} == {w.id for w in world}:
        return replace(state, stop_sent=False, short_since=None), []
    if len(target) < state.limits.min_size:
        return _wait_for_more(now, state, blocked=bool(world) and not stable)
    state = replace(state, short_since=None)
    active = tuple(w.id for w in world if w.phase is Phase.ACTIVE)
    if not active:
        return _assign(now, state, target) if target else (state, [])
    if state.stop_sent:
        return state, []
    return replace(state, stop_sent=True), [Stop(active, state.generation + 1)]


def _target(now: float, state: Membership) -> list[Worker]:
    """The members of the next world, as far as they can be there now."""
    wanted = {slot.key for slot in _wanted(now, state)}
    world = state.world
    stay = [w for w in world if w.slot.key in wanted]
    newcomers = [
        w for w in state.workers.values() if w.generation != state.generation or not state.generation
    ]
    ready = [w for w in newcomers if w.phase is Phase.DOOR]
    late = now - state.limits.start_timeout
    booting = [w for w in newcomers if w.phase is Phase.STARTING and w.started_at > late]
    if booting:
        return stay if len(stay) >= state.limits.min_size or not world else _keep(world, stay)
    if world and not stay:
        return ready + world[:1] if ready else world
    return stay + ready


def _keep(world: list[Worker], stay: list[Worker]) -> list[Worker]:
    """Too few would stay until the newcomers are ready: nobody leaves yet."""
    return world if len(world) > len(stay) else stay


def _wait_for_more(now: float, state: Membership, blocked: bool) -> tuple[Membership, list[Action]]:
    if not blocked:
        return state, []
    since = now if state.short_since is None else state.short_since
    state = replace(state, short_since=since)
    if now - since < state.limits.shortage_timeout:
        return state, []
    reason = f"fewer than {state.limits.min_size} workers could run for {state.limits.shortage_timeout:g} s"
    return _end_all(_decide_end(state, Finish(False, reason)))


def _assign(now: float, state: Membership, target: list[Worker]) -> tuple[Membership, list[Action]]:
    previous = state.world
    generation = state.generation + 1
    places = place(target, state.generation)
    for at in places:
        has_state = state.generation == 0 or state.workers[at.worker].has_state
        changes = {"generation": generation, "rank": at.rank, "has_state": has_state}
        state = _set(state, at.worker, phase=Phase.ACTIVE, **changes)
    chosen = {at.worker for at in places}
    state, dismissed = _let_go(now, state, [w for w in previous if w.id not in chosen])
    assign = Assign(generation, places, state.size or None, _reason(state.size, len(places)))
    state = replace(state, generation=generation, size=len(places), stop_sent=False)
    return state, [assign, *dismissed]


def _reason(previous: int, size: int) -> str:
    if not previous:
        return "first world"
    return "grown" if size > previous else "shrunk" if size < previous else "formed anew"


# The end.


def _end_all(state: Membership) -> tuple[Membership, list[Action]]:
    """End every process, then finish."""
    living = [w for w in state.workers.values() if w.phase is not Phase.ENDING]
    actions: list[Action] = [Terminate(worker.id) for worker in living]
    for worker in living:
        state = _set(state, worker.id, phase=Phase.ENDING)
    return _finish_if_empty(state, actions)


def _run_out(now: float, state: Membership) -> tuple[Membership, list[Action]]:
    """Training is over for some: nobody joins any more, and the rest is waited for.

    Members that lost the others on the way through the last step form a world of their own to repeat it.
    Programs that end without having reached an elastic function are left to themselves.
    """
    world = state.world
    newcomers = [w for w in state.workers.values() if w not in world]
    if state.generation == 0:
        newcomers = [w for w in newcomers if w.phase is not Phase.STARTING]
    state, actions = _let_go(now, state, newcomers)
    state, overdue = _end_overdue(now, state)
    actions += overdue
    at_door = [w for w in world if w.phase is Phase.DOOR]
    if at_door and not any(w.phase is Phase.ACTIVE for w in world):
        finished = [w for w in world if w.phase is Phase.DONE]
        state, assigned = _assign(now, state, at_door)
        for worker in finished:
            state = _set(state, worker.id, generation=state.generation)
        actions += assigned
    return _finish_if_empty(state, actions)


def _finish_if_empty(state: Membership, actions: list[Action]) -> tuple[Membership, list[Action]]:
    if state.workers:
        return state, actions
    outcome = state.outcome or Finish(True, _RETURNED)
    return replace(state, finished=True, outcome=outcome), [*actions, outcome]
