"""What the ends of workers mean for worlds that are replaced as a whole."""

from dataclasses import replace

from edt_launch.core.history import events
from edt_launch.core.history.exit_codes import signal_name
from edt_launch.membership import protocol
from edt_launch.membership.generations import GenerationsTurn, fit
from edt_launch.membership.members import after_failure
from edt_launch.membership.protocol import HostLoss, MemberPhase, Worker


def take_exit(turn: GenerationsTurn, exited: protocol.Exited) -> None:
    """A worker has ended, or is given up."""
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
    signal = signal_name(exit_code)
    return events.Failed(*worker.where, worker.rank, exit_code, signal, reason, after)


def _suspend(turn: GenerationsTurn, worker: Worker, has_reached_host: bool = True) -> float:
    """Leave its slot alone; returns for how many seconds."""
    suspension = after_failure(turn.now, turn.state.suspended.get(worker.slot.key), has_reached_host)
    turn.set(suspended={**turn.state.suspended, worker.slot.key: suspension})
    return suspension.until - turn.now


def _lost_newcomer(turn: GenerationsTurn, worker: Worker, exited: protocol.Exited) -> None:
    """One that did not reach its world: its slot is tried again later, the world in force trains on."""
    reason = (
        "" if exited.exit_code else f"rank {worker.rank} on {worker.slot.host} ended before it could join"
    )
    after = _suspend(turn, worker, exited.host_loss is not HostLoss.UNREACHED)
    turn.do(_failed(worker, exited.exit_code, reason, after))
    turn.discard()


def _suspend_host(turn: GenerationsTurn, worker: Worker) -> None:
    turn.set(is_host_lost=True)
    for slot in turn.state.lineups.get(worker.generation, ()):
        known = turn.state.suspended.get(slot.key)
        if slot.host == worker.slot.host and (known is None or known.until <= turn.now):
            _suspend(turn, replace(worker, slot=slot))


def _do_without(turn: GenerationsTurn, worker: Worker) -> None:
    """Its slot lacks something: that is no failure of the program as long as there are enough others."""
    _suspend(turn, worker)
    state = turn.state
    others = fit(state.wanted(turn.now), state.limits)
    turn.set(is_host_lost=len(others) >= max(1, state.limits.min_size))


def _lost(turn: GenerationsTurn, worker: Worker, exited: protocol.Exited) -> None:
    """A failure: what follows is decided when the whole world is gone, and it is known whether a host is."""
    turn.do(_failed(worker, exited.exit_code))
    turn.set(is_torn=True, failed=turn.state.failed or worker)


def judge(turn: GenerationsTurn) -> None:
    """The last worker of a world with a failure is gone: decide whether the program is started again."""
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
