"""How long newcomers may take from their start to the rendezvous: learned from those that have got there.

A newcomer that takes longer than others did is not waited for any more: what the others can do without it
is done, and it comes in later. One that takes far longer is ended, and its slot tried again like that of any
failure. As long as nobody has reached the rendezvous there is nothing to learn from, and nobody who waits;
then there is no limit but the user's.
"""

from math import inf

from edt_launch.core.history import events
from edt_launch.membership.members import Membership, Turn
from edt_launch.membership.protocol import MemberPhase, Resize, Worker

TOLD_AFTER = 30.0
"""Seconds after which it is told that a newcomer takes long, if others were faster."""

HOLD_UP = 60.0
"""Seconds for which newcomers may hold up the others of a change at least."""

HOLD_UP_FACTOR = 3.0
"""The same as a multiple of the longest start so far."""

GIVE_UP = 600.0
"""Seconds after which a newcomer is ended at the earliest."""

GIVE_UP_FACTOR = 10.0
"""The same as a multiple of the longest start so far."""


def is_waited_for(now: float, state: Membership, worker: Worker) -> bool:
    """Whether a newcomer that is starting may hold up the others."""
    return worker.phase is MemberPhase.STARTING and now - worker.started_at < _hold_up(state)


def overdue(now: float, state: Membership) -> list[tuple[int, str]]:
    """The newcomers that take far too long, each with the reason."""
    limit = _give_up(state)
    late = [
        w for w in state.workers.values() if w.phase is MemberPhase.STARTING and now - w.started_at >= limit
    ]
    longest = "" if state.longest_start is None else f", the slowest so far took {state.longest_start:.0f} s"
    reason = f"has not come to the elastic function within {limit:.0f} s (see --ready-timeout){longest}"
    return [(w.id, f"the worker started in slot {w.slot.index} of {w.slot.host} {reason}") for w in late]


def tell(turn: Turn) -> None:
    """Tell of each newcomer once that it takes long, if there is a limit to that.

    There is none while nobody has reached the rendezvous: a plain program never does.
    """
    now, state = turn.now, turn.state
    if _hold_up(state) == inf:
        return
    usual = max(TOLD_AFTER, state.longest_start or 0.0)
    wanted = {slot.key for slot in state.wanted(now)}
    starting = (w for w in state.workers.values() if w.phase is MemberPhase.STARTING and w.slot.key in wanted)
    late = [w for w in starting if not w.is_late and now - w.started_at >= usual]
    if late:
        for worker in late:
            turn.change(worker.id, is_late=True)
        seconds = max(now - w.started_at for w in late)
        slots = tuple(events.WorkerSlot(*worker.where) for worker in late)
        limits = (None if limit == inf else limit for limit in (_hold_up(state), _give_up(state)))
        turn.do(events.SlowStart(slots, seconds, state.longest_start, *limits))


def learn(turn: Turn, worker: Worker) -> None:
    """A newcomer has reached the rendezvous."""
    turn.set(longest_start=max(turn.state.longest_start or 0.0, turn.now - worker.started_at))


def _hold_up(state: Membership) -> float:
    longest = state.longest_start
    learned = inf if longest is None else max(HOLD_UP, HOLD_UP_FACTOR * longest)
    return min(learned, _give_up(state))


def _give_up(state: Membership) -> float:
    if state.limits.resize is Resize.FIXED:
        return inf
    timeout, longest = state.limits.ready_timeout, state.longest_start
    if timeout is not None:
        return timeout or inf
    return inf if longest is None else max(GIVE_UP, GIVE_UP_FACTOR * longest)
