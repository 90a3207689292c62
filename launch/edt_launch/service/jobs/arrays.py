"""Arrays of jobs: how many of them run at a time. A pure function."""

from collections import Counter
from collections.abc import Iterable

from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.states import HAS_LAUNCHER, State, Wanted


def over_limit(records: Iterable[JobRecord]) -> dict[str, str]:
    """Queued jobs of arrays of which enough jobs run, by their ids, and why they wait.

    Args:
        records: of jobs that wait for nothing else, or run, in the order of their submission.
    """
    jobs = [record for record in records if record.array_limit is not None]
    taken = Counter((job.owner, job.array_id) for job in jobs if job.state in HAS_LAUNCHER)
    found = {}
    for job in jobs:
        if job.state is State.QUEUED and job.wanted is Wanted.RUN and job.array_limit is not None:
            taken[job.owner, job.array_id] += 1
            if taken[job.owner, job.array_id] > job.array_limit:
                found[job.id] = f"waits: its array runs at most {job.array_limit} at a time"
    return found
