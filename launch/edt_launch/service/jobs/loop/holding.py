"""Which queued jobs may not start yet, whatever devices there are, and which never can: pure functions."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.states import ENDED, State, Wanted

SHOWN_JOBS = 3
"""Jobs that a reason names."""


@dataclass(frozen=True)
class Hold:
    """Why a queued job does not start.

    Attributes:
        reason: for people; empty if nothing holds it back.
        after: jobs that have to succeed before it starts, and have not.
        is_final: whether it can never start.
    """

    reason: str = ""
    after: tuple[str, ...] = ()
    is_final: bool = False


def hold(now: float, record: JobRecord, states: Mapping[str, State | None]) -> Hold:
    """What holds a job back.

    Args:
        now: unix seconds.
        record: of the job.
        states: of other jobs, by their ids; None for one that was deleted.
    """
    after = tuple(job for job in record.after if states.get(job, State.QUEUED) is not State.SUCCEEDED)
    if record.state is not State.QUEUED or record.wanted is not Wanted.RUN:
        return Hold(after=after)
    for job in after:
        state = states.get(job, State.QUEUED)
        if state is None or state in ENDED:
            what = "was deleted" if state is None else f"has {state}"
            return Hold(f"{job} {what}: this job was to run after its success", after, is_final=True)
    if after:
        more = f" and {len(after) - SHOWN_JOBS} more" if len(after) > SHOWN_JOBS else ""
        return Hold(f"waits for the success of {', '.join(after[:SHOWN_JOBS])}{more}", after)
    if now < record.begin:
        return Hold(f"begins at {datetime.fromtimestamp(record.begin, UTC):%Y-%m-%d %H:%M:%S} UTC")
    return Hold()
