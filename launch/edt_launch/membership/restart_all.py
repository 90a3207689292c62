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
long as it takes, or for `PATIENCE` if the program has not saved anything yet. A world that has lost a member
is ended at once. Ends by an error of the program are counted, against `max_restarts`; resizes and lost hosts
are not.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import inf

from edt_launch.core.history import events
from edt_launch.membership import protocol
from edt_launch.membership.intake import ALL_ENDED
from edt_launch.membership.members import Membership, Turn, WorldLimits, after_failure
from edt_launch.membership.protocol import (
    Action,
    Admit,
    Event,
    HostLoss,
    MemberPhase,
    Open,
    Slot,
    Start,
    StopWorkers,
    Terminate,
    Worker,
)
from edt_launch.membership.shortage import over, tell

RESIZE_GRACE = 2.0
"""Seconds that a worker has after SIGTERM when another takes its place."""

PATIENCE = 600.0
"""Seconds that a world which would only grow has for its first checkpoint."""


@dataclass(frozen=True)
class Generations(Membership):
    """The state of this protocol: `generation` is the one in force, `size` the size of its world."""

    lineups: Mapping[int, tuple[Slot, ...]] = field(default_factory=dict)
    """The slots of the workers of each generation, by rank: the one in force, and the next."""
    newest: int = 0
    """The generation that was begun last."""
    attempt: int = 0
    """How often the program has failed."""
    has_gate: bool = False
    """Whether a worker has come to the gate."""
    has_saved: bool = False
    saving: frozenset[int] = frozenset()
    """Workers that write a checkpoint."""
    holder: int | None = None
    """The worker of the world in force, rank 0, that holds; None while none does."""
    due_since: float | None = None
    """When it became known that the world in force is to be replaced."""
    returned: int = 0
    """Workers of the world in force that have ended with exit code 0."""
    failed: Worker | None = None
    """The worker of the world in force that failed first; None while none has."""
    is_host_lost: bool = False
    """Whether the world in force has lost a host, which explains all failures in it."""

    @property
    def has_chance(self) -> bool:
        """Whether the program is started again after the failure of a world."""
        return self.is_host_lost or self.attempt < self.limits.max_restarts

    def lineup(self, worker: Worker) -> tuple[Slot, ...]:
        """The slots of all with whom a worker is started, by rank."""
        return self.lineups[worker.generation]

    @property
    def in_force(self) -> list[Worker]:
        """The workers of the generation in force whose processes are there."""
        return [w for w in self.workers.values() if w.generation <= self.generation]

    @property
    def next(self) -> list[Worker]:
        """The workers of the generation that is to follow."""
        return [w for w in self.workers.values() if self.generation < w.generation == self.newest]

    @property
    def is_prepared(self) -> bool:
        """Whether there is a next generation."""
        return self.newest > self.generation and self.newest in self.lineups


def step(now: float, state: Membership, event: Event) -> tuple[Membership, list[Action]]:
    """The next state and what to do, in this order, given what happened at a time of a monotonic clock."""
    assert isinstance(state, Generations)
    turn = _Turn(now, state)
    _apply(turn, event)
    _reconcile(turn)
    return turn.state, turn.actions


class _Turn(Turn):
    state: Generations

    def end(self, workers: Iterable[Worker], grace: float | None) -> None:
        """End workers: by SIGTERM, and SIGKILL after `grace` seconds, or at once."""
        for worker in workers:
            if worker.phase is not MemberPhase.ENDING:
                self.do(Terminate(worker.id, at_once=grace is None, grace=grace))
                self.change(worker.id, phase=MemberPhase.ENDING)


def fit(slots: Sequence[Slot], limits: WorldLimits) -> tuple[Slot, ...]:
    """The largest allowed world in these slots: whole nodes, each `limits.unit` slots of one host."""
    hosts = [list(on) for _, on in groupby(slots, lambda slot: slot.host)]
    whole = [slot for on in hosts for slot in on[: len(on) // limits.unit * limits.unit]]
    most = min(len(whole), limits.max_size) // limits.unit * limits.unit
    sizes = [size for size in limits.allowed or (most,) if size <= most]
    return tuple(whole[: max(sizes, default=0)])


def _apply(turn: _Turn, event: Event) -> None:
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
            _exited(turn, event)
        case protocol.Abort(reason):
            turn.decide_end(events.Finished(1, reason, aborted=True))
        case protocol.PauseWanted(reason):
            turn.set(pausing=reason)


def _admit(turn: _Turn, worker: Worker) -> None:
    turn.do(Admit(worker.id, worker.generation))
    turn.change(worker.id, phase=MemberPhase.ACTIVE)


def _exited(turn: _Turn, exited: protocol.Exited) -> None:
    worker = turn.state.workers.get(exited.worker)
    if worker is None:
        return
    others = {key: other for key, other in turn.state.workers.items() if key != worker.id}
    turn.set(workers=others, saving=turn.state.saving - {worker.id})
    if exited.host_loss is HostLoss.UNFIT and worker.generation == turn.state.generation:
        _do_without(turn, worker)
    elif exited.host_loss is not None and worker.generation == turn.state.generation:
        _suspend_host(turn, worker)
    if worker.phase is MemberPhase.ENDING:
        turn.do(events.Left(worker.id))
    elif worker.generation > turn.state.generation:
        _lost_newcomer(turn, worker, exited)
    elif exited.exit_code == 0:
        turn.set(returned=turn.state.returned + 1)
        turn.do(events.Left(worker.id))
    else:
        _lost(turn, worker, exited)


def _failed(worker: Worker, exit_code: int, reason: str = "", after: float | None = None) -> events.Failed:
    signal = events.signal_name(exit_code)
    return events.Failed(*worker.where, worker.rank, exit_code, signal, reason, after)


def _suspend(turn: _Turn, worker: Worker, has_reached_host: bool = True) -> float:
    """Leave its slot alone; returns for how many seconds."""
    suspension = after_failure(turn.now, turn.state.suspended.get(worker.slot.key), has_reached_host)
    turn.set(suspended={**turn.state.suspended, worker.slot.key: suspension})
    return suspension.until - turn.now


def _lost_newcomer(turn: _Turn, worker: Worker, exited: protocol.Exited) -> None:
    """One that did not reach its world: its slot is tried again later, the world in force trains on."""
    reason = (
        "" if exited.exit_code else f"rank {worker.rank} on {worker.slot.host} ended before it could join"
    )
    after = _suspend(turn, worker, exited.host_loss is not HostLoss.UNREACHED)
    turn.do(_failed(worker, exited.exit_code, reason, after))
    _discard(turn)


def _suspend_host(turn: _Turn, worker: Worker) -> None:
    turn.set(is_host_lost=True)
    for slot in turn.state.lineups.get(worker.generation, ()):
        known = turn.state.suspended.get(slot.key)
        if slot.host == worker.slot.host and (known is None or known.until <= turn.now):
            _suspend(turn, replace(worker, slot=slot))


def _do_without(turn: _Turn, worker: Worker) -> None:
    """Its slot lacks something: that is no failure of the program as long as there are enough others."""
    _suspend(turn, worker)
    state = turn.state
    others = fit(state.wanted(turn.now), state.limits)
    turn.set(is_host_lost=len(others) >= max(1, state.limits.min_size))


def _lost(turn: _Turn, worker: Worker, exited: protocol.Exited) -> None:
    """A failure: what follows is decided when the whole world is gone, and it is known whether a host is."""
    turn.do(_failed(worker, exited.exit_code))
    turn.set(is_torn=True, failed=turn.state.failed or worker)


def _judge(turn: _Turn) -> None:
    """The last worker of a world with a failure is gone."""
    state = turn.state
    assert state.failed is not None
    if not state.has_chance:
        turn.decide_end(events.Finished(1, _why(state.failed, state.limits.max_restarts)))
    turn.set(
        attempt=state.attempt + (not state.is_host_lost),
        lineups={number: slots for number, slots in state.lineups.items() if number != state.generation},
        is_torn=False,
        failed=None,
        is_host_lost=False,
        returned=0,
        holder=None,
    )


def _why(worker: Worker, restarts: int) -> str:
    after = f", after {restarts} {'restart' if restarts == 1 else 'restarts'}" if restarts else ""
    return f"rank {worker.rank} on {worker.slot.host} failed{after}"


# Towards the world that is wanted.


def _reconcile(turn: _Turn) -> None:
    state = turn.state
    if state.finished:
        return
    if state.outcome is not None:
        turn.end(state.workers.values(), None if _is_over(state) else state.limits.end_grace)
        _finish_if_empty(turn)
    elif state.pausing is not None:
        _pause(turn)
    elif state.is_torn and not state.in_force:
        _judge(turn)
        _reconcile(turn)
    elif state.returned and not state.is_torn:
        _discard(turn)
        _release_holder(turn)  # the others train on to the end
        if not turn.state.in_force:
            turn.decide_end(events.Finished(0, ALL_ENDED))
        _finish_if_empty(turn)
    else:
        _move(turn)


def _is_over(state: Generations) -> bool:
    return state.outcome is not None and state.outcome.succeeded


def _finish_if_empty(turn: _Turn) -> None:
    if not turn.state.workers and turn.state.outcome is not None:
        turn.set(finished=True)
        turn.do(turn.state.outcome)


def _pause(turn: _Turn) -> None:
    """All are to leave, at a checkpoint if one comes in time."""
    _discard(turn)
    _become_due(turn)
    if _may_cut(turn, shrinks=True):
        turn.end(turn.state.in_force, RESIZE_GRACE)
    if not turn.state.workers:
        turn.decide_end(events.Finished(1, turn.state.pausing or "", left=True))
        _finish_if_empty(turn)


def _discard(turn: _Turn) -> None:
    """The next generation is not the one that is wanted any more."""
    state = turn.state
    if state.is_prepared:
        turn.end(state.next, None)
        lineups = {number: slots for number, slots in state.lineups.items() if number != state.newest}
        turn.set(lineups=lineups)


def _release_holder(turn: _Turn) -> None:
    """Let rank 0 go on where it holds for a resize."""
    if turn.state.holder is not None:
        turn.do(Admit(turn.state.holder, turn.state.generation))
        turn.set(holder=None)


def _move(turn: _Turn) -> None:
    state = turn.state
    target = fit(state.wanted(turn.now), state.limits)
    now_in_force = () if state.is_torn else state.lineups.get(state.generation, ())
    is_same = {slot.key for slot in target} == {slot.key for slot in now_in_force}
    if state.is_prepared and (is_same or _keys(state.lineups[state.newest]) != _keys(target)):
        _discard(turn)
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


def _become_due(turn: _Turn, tell_workers: bool = True) -> None:
    """The world in force is to be replaced; its workers hold when they can, once they are told."""
    state = turn.state
    if state.due_since is None:
        turn.set(due_since=turn.now)
    members = tuple(w.id for w in state.in_force if w.phase in (MemberPhase.ACTIVE, MemberPhase.READY))
    if tell_workers and members and not state.stop_sent:
        turn.set(stop_sent=True)
        turn.do(StopWorkers(members, state.newest))


def _may_cut(turn: _Turn, shrinks: bool) -> bool:
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
    return state.limits.grace if shrinks else inf if state.has_saved else PATIENCE


def _wait_for_more(turn: _Turn, is_training: bool) -> None:
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


def _begin(turn: _Turn, slots: tuple[Slot, ...]) -> None:
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


def _open(turn: _Turn) -> None:
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
