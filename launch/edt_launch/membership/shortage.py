"""Telling that too few workers can run, and why; and what ends with it."""

from dataclasses import replace

from edt_launch.core import events
from edt_launch.membership.members import Membership
from edt_launch.membership.protocol import Action, Phase, Slot


def waiting(now: float, state: Membership) -> tuple[Membership, list[Action]]:
    """Tell what is missing when that has changed. The state knows since when it is short."""
    wanted = {slot.key for slot in state.wanted(now)}
    present = (w for w in state.workers.values() if w.phase in (Phase.READY, Phase.ACTIVE) and not w.notice)
    ready = {w.slot.key for w in present} & wanted
    missing = {slot: _missing(now, state, slot) for slot in state.desired if slot.key not in ready}
    shortage = len(ready), [(slot, lack.reason) for slot, lack in missing.items()]
    if shortage == state.shortage:
        return state, []
    since = now if state.short_since is None else state.short_since
    left = state.limits.shortage_timeout - (now - since)
    limits, lacks = state.limits, tuple(missing.values())
    told = events.Waiting(len(ready), limits.min_size, left, len(state.desired), lacks)
    return replace(state, shortage=shortage), [told]


def over(state: Membership) -> events.Finished:
    """The end of a job that has been short of workers for too long."""
    limits = state.limits
    reason = f"fewer than {limits.min_size} workers could run for {limits.shortage_timeout:g} s"
    return events.Finished(1, reason)


def _missing(now: float, state: Membership, slot: Slot) -> events.MissingWorker:
    suspension = state.suspended.get(slot.key)
    if suspension is not None and suspension.until > now:
        seconds = suspension.until - now
        return events.MissingWorker(slot.host, slot.index, suspension.reason, seconds)
    is_starting = any(w.slot.key == slot.key and w.phase is Phase.STARTING for w in state.workers.values())
    reason = "is starting" if is_starting else "is being cleared"
    return events.MissingWorker(slot.host, slot.index, reason)
