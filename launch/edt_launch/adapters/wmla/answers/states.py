"""The states that WMLA's clients know, of a job's own.

Clients poll while a state is `SUBMITTED`, `PENDING_CRD_SCHEDULER` or `RUNNING`; any other one ends that.
"""

from edt_launch.service.database.records import JobRecord
from edt_launch.service.states import State

SUBMITTED, PENDING, RUNNING = "SUBMITTED", "PENDING_CRD_SCHEDULER", "RUNNING"
FINISHED, ERROR, KILLED = "FINISHED", "ERROR", "KILLED"

_STATES = {
    State.QUEUED: PENDING,
    State.STARTING: RUNNING,
    State.RUNNING: RUNNING,
    State.PAUSING: RUNNING,
    State.PAUSED: PENDING,
    State.SUSPENDING: RUNNING,
    State.STOPPING: RUNNING,
    State.SUCCEEDED: FINISHED,
    State.FAILED: ERROR,
    State.STOPPED: KILLED,
}

KNOWN = (SUBMITTED, PENDING, RUNNING, FINISHED, ERROR, KILLED)
"""All of them."""

NEVER = ("NEW", "PENDING_JOB_SCHEDULER", "LAUNCHING", "WAITING", "RECOVERING", "UNKNOWN")
"""WMLA's other names: they may be asked for, and no job here is ever told to be in one."""

APPLICATION = {
    SUBMITTED: "Submitted",
    PENDING: "Pending",
    RUNNING: "Running",
    FINISHED: "Finished",
    ERROR: "Error",
    KILLED: "Killed",
}
"""What the same is called of an application."""


def state_of(job: JobRecord) -> str:
    """A job's state; it is `SUBMITTED` until it has been decided upon for the first time."""
    if job.state is State.QUEUED and job.why is None and job.started is None:
        return SUBMITTED
    return _STATES[job.state]


def behind(name: str) -> frozenset[State]:
    """The jobs' own states in which `name` may be told; none if it never is."""
    own = PENDING if name == SUBMITTED else name
    return frozenset(state for state, told in _STATES.items() if told == own)
