"""The lifetime of a warm server: a pure decision."""

from dataclasses import dataclass

IDLE_LIMIT = 60.0
"""Seconds that a server without workers stays; the next worker starts another."""


@dataclass(frozen=True)
class Stay:
    """Go on, and decide again after so many seconds if nothing else happens; None: only then."""

    seconds: float | None


@dataclass(frozen=True)
class End:
    """End now."""

    reason: str


def decide(now: float, workers: int, idle_since: float, agent_gone: bool) -> Stay | End:
    """Whether a server is still needed.

    Args:
        now: seconds of a monotonic clock.
        workers: how many workers it has.
        idle_since: when it had its last one, or began.
        agent_gone: whether the agent has ended. Its workers end by themselves then.
    """
    if workers:
        return Stay(None)
    if agent_gone:
        return End("the agent has gone")
    if now - idle_since >= IDLE_LIMIT:
        return End(f"no worker for {IDLE_LIMIT:g} s")
    return Stay(idle_since + IDLE_LIMIT - now)
