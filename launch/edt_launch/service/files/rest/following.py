"""Following what a job writes: from where, and how long."""

import contextlib
from typing import Annotated

from fastapi import Query
from starlette.concurrency import run_in_threadpool

from edt_launch.service.app.context import Context
from edt_launch.service.bus import Topic
from edt_launch.service.db.engine import AWAY
from edt_launch.service.files.tailing import IsOver
from edt_launch.service.jobs.states import ENDED

Offset = Annotated[
    int, Query(ge=0, le=2**53, description="Bytes of the file to leave out; of events, the last one's id.")
]


def until_it_ends(context: Context, job_id: str) -> IsOver:
    """Whether a job has ended or is gone, or the service ends; the database is asked only after changes."""
    seen: int | None = None
    has_ended = False

    async def is_over() -> bool:
        nonlocal seen, has_ended
        version = context.bus.version(Topic.JOBS)
        if version != seen:
            with contextlib.suppress(*AWAY):  # asked again next time
                state = await run_in_threadpool(context.store.jobs.state, job_id)
                seen, has_ended = version, state is None or state in ENDED
        return has_ended or context.stop.is_set()

    return is_over
