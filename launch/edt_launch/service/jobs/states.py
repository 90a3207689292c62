"""The life of a job, as a table.

A job waits (`queued`) until it gets its minimum; `starting` until its first process has been started; then
`running`.
Two ways lead out of that and back: its owner pauses it (`pausing`, `paused`, and on resumption `queued`), or
the allocator takes all its devices away (`suspending`, then `queued`); in both its state is saved before its
workers leave, if it can. A live job that is to end for good is `stopping`. A job whose launcher is found dead
without having said how it ended goes back to where it can be started from again: `queued`, or `paused` if
that was wanted. The last three states are final.

What the user wants (`Wanted`) is kept apart from what is: the interface writes the one, the loop the other.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum


class State(StrEnum):
    """Where a job stands."""

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    PAUSING = "pausing"
    PAUSED = "paused"
    SUSPENDING = "suspending"
    STOPPING = "stopping"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"


class Wanted(StrEnum):
    """What a job's owner wants of it."""

    RUN = "run"
    PAUSE = "pause"
    STOP = "stop"


_ENDS = {State.SUCCEEDED, State.FAILED}
"""A launcher may end at any moment, whatever it has been asked for."""

NEXT: Mapping[State, frozenset[State]] = {
    State.QUEUED: frozenset({State.STARTING, State.PAUSED, State.STOPPED, State.FAILED}),
    State.STARTING: frozenset(
        {State.RUNNING, State.QUEUED, State.PAUSING, State.SUSPENDING, State.STOPPING, *_ENDS}
    ),
    State.RUNNING: frozenset({State.QUEUED, State.PAUSING, State.SUSPENDING, State.STOPPING, *_ENDS}),
    State.PAUSING: frozenset({State.PAUSED, State.STOPPING, *_ENDS}),
    State.PAUSED: frozenset({State.QUEUED, State.STOPPED}),
    State.SUSPENDING: frozenset({State.QUEUED, State.PAUSING, State.STOPPING, *_ENDS}),
    State.STOPPING: frozenset({State.STOPPED, *_ENDS}),
    State.SUCCEEDED: frozenset(),
    State.FAILED: frozenset(),
    State.STOPPED: frozenset(),
}
"""Where a job may go from each state."""

ENDED = frozenset(state for state, following in NEXT.items() if not following)
"""The final states."""

LIVE = frozenset(State) - ENDED
"""All others."""

HAS_LAUNCHER = LIVE - {State.QUEUED, State.PAUSED}
"""Those in which an `edt-launch` may be running."""


class IllegalTransitionError(Exception):
    """A job cannot go from one state to another; `history` are the states that it has had, oldest first."""

    def __init__(self, job: str, before: State, after: State, history: Iterable[str] = ()) -> None:
        allowed = ", ".join(sorted(NEXT[before])) or "nothing: it has ended"
        been = " -> ".join(history)
        super().__init__(
            f"{job} is {before} and cannot become {after}; what can follow: {allowed}"
            + (f" (its last states: {been})" if been else "")
        )


def check(job: str, before: State, after: State, history: Iterable[str] = ()) -> None:
    """Raise `IllegalTransitionError` unless a job may go from one state to another."""
    if after not in NEXT[before]:
        raise IllegalTransitionError(job, before, after, history)
