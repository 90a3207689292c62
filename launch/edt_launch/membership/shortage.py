"""Telling that too few workers can run, and why; and what ends with it."""

from edt_launch.core.history import events
from edt_launch.membership.members import Membership, Turn, WorldLimits
from edt_launch.membership.protocol import MemberPhase, Slot


def tell(turn: Turn, since: float) -> None:
    """Tell what is missing, since then, when that has changed."""
    state, limits = turn.state, turn.state.limits
    wanted = {slot.key for slot in state.wanted(turn.now)}
    present = (
        w
        for w in state.workers.values()
        if w.phase in (MemberPhase.READY, MemberPhase.ACTIVE) and not w.notice
    )
    ready = {w.slot.key for w in present} & wanted
    missing = {slot: _missing(turn.now, state, slot) for slot in state.desired if slot.key not in ready}
    shortage = len(ready), [(slot, lack.reason) for slot, lack in missing.items()]
    if shortage != state.shortage:
        turn.set(shortage=shortage)
        left = limits.shortage_timeout - (turn.now - since)
        lacks = tuple(missing.values())
        turn.do(events.Waiting(len(ready), limits.min_size, left, len(state.desired), lacks))


def over(limits: WorldLimits) -> events.Finished:
    """The end of a job that has been short of workers for too long."""
    reason = f"fewer than {limits.min_size} workers could run for {limits.shortage_timeout:g} s"
    return events.Finished(1, reason)


def _missing(now: float, state: Membership, slot: Slot) -> events.MissingWorker:
    suspension = state.suspended.get(slot.key)
    if suspension is not None and suspension.until > now:
        return events.MissingWorker(slot.host, slot.index, suspension.reason, suspension.until - now)
    is_starting = any(
        w.slot.key == slot.key and w.phase is MemberPhase.STARTING for w in state.workers.values()
    )
    return events.MissingWorker(slot.host, slot.index, "is starting" if is_starting else "is being cleared")
