"""What streams that follow a job share: when they end."""

import contextlib

from starlette.concurrency import run_in_threadpool

from edt_launch.service.api.context import Context
from edt_launch.service.bus import Topic
from edt_launch.service.database.engine import AWAY
from edt_launch.service.states import ENDED
from edt_launch.service.tailing import IsOver


def until_it_ends(here: Context, job_id: str) -> IsOver:
    """Whether a job has ended or is gone, or the service ends; the database is asked only after changes."""
    seen: int | None = None
    has_ended = False

    async def is_over() -> bool:
        nonlocal seen, has_ended
        version = here.bus.version(Topic.JOBS)
        if version != seen:
            with contextlib.suppress(*AWAY):  # asked again next time
                state = await run_in_threadpool(here.store.jobs.state, job_id)
                seen, has_ended = version, state is None or state in ENDED
        return has_ended or here.stop.is_set()

    return is_over
