"""Slots that are left alone for a while: after failures, and after notices that they are to be given up."""

from dataclasses import dataclass, replace

SUSPENSION = 5.0
"""Seconds for which a slot is left alone after its first failure; doubles with every further one."""

LONGEST = 600.0
"""Seconds for which a slot is left alone at most."""

START_FAILURES = 4
"""Failures in a slot, before any world was formed, that the job does not survive."""

NOTICE_SUSPENSION = 60.0
"""Seconds for which a slot is left alone after its first notice; doubles with every further one."""

FORGET = 600.0
"""Seconds after the end of a suspension for which a slot's failures and notices are remembered."""


@dataclass(frozen=True)
class Suspension:
    """A slot that is left alone until a time of the protocol's clock, after so many failures and notices."""

    failures: int = 0
    notices: int = 0
    until: float = 0.0
    reason: str = ""


def after_failure(now: float, last: Suspension | None) -> Suspension:
    """What becomes of a slot in which a worker has failed now."""
    known = _remembered(now, last)
    failures = known.failures + 1
    seconds = min(SUSPENSION * 2 ** (failures - 1), LONGEST)
    times = "failed" if failures == 1 else f"failed {failures} times"
    return replace(known, failures=failures, until=max(known.until, now + seconds), reason=times)


def after_notice(now: float, last: Suspension | None, notice: str) -> Suspension:
    """What becomes of a slot whose worker has been told now to give it up."""
    known = _remembered(now, last)
    notices = known.notices + 1
    seconds = min(NOTICE_SUSPENSION * 2 ** (notices - 1), LONGEST)
    return replace(known, notices=notices, until=max(known.until, now + seconds), reason=f"left: {notice}")


def _remembered(now: float, last: Suspension | None) -> Suspension:
    return last if last is not None and now - last.until < FORGET else Suspension()
