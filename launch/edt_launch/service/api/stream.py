"""`/api/v1/stream`: jobs as they change, for live views."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool

from edt_launch.service.api import sse
from edt_launch.service.api.context import Context, Here, User
from edt_launch.service.api.job_list_cache import STALE, Picture, Pictures
from edt_launch.service.bus import Topic
from edt_launch.service.database.engine import AWAY
from edt_launch.service.database.records import UserRecord

router = APIRouter(tags=["jobs"])

PAUSE = 0.25
"""Seconds between two looks at whether anything has changed."""


@router.get("/stream", response_class=StreamingResponse, responses={200: {"content": {sse.MEDIA_TYPE: {}}}})
def stream(request: Request, here: Here, user: User) -> StreamingResponse:
    """Server-sent events `jobs`: {"jobs": those that are new or have changed, "gone": ids}; all at first."""
    return StreamingResponse(_changes(here, user, request.app.state.pictures), media_type=sse.MEDIA_TYPE)


async def _changes(here: Context, user: UserRecord, pictures: Pictures) -> AsyncIterator[bytes]:
    known: Picture | None = None
    seen, looked, silent = -1, 0.0, 0.0
    while not here.stop.is_set():
        version, now = here.bus.version(Topic.JOBS), here.clock()
        if version != seen or now - looked >= STALE:
            seen, looked = version, now
            with contextlib.suppress(*AWAY):  # the next look finds what has changed
                picture = await run_in_threadpool(pictures.latest)
                message = difference(known, picture, user)
                known = picture
                if message is not None:
                    silent = 0.0
                    yield message
        if silent >= sse.KEEP_ALIVE_INTERVAL:
            silent = 0.0
            yield sse.KEEP_ALIVE
        silent += PAUSE
        await asyncio.sleep(PAUSE)


def difference(known: Picture | None, picture: Picture, user: UserRecord) -> bytes | None:
    """The event that leads from one picture to another; None if they are the same."""
    before = known or {}
    changed = [shown.to(user) for job, shown in picture.items() if before.get(job) is not shown]
    gone = [job for job in before if job not in picture]
    if known is not None and not changed and not gone:
        return None
    data = b'{"jobs":[' + b",".join(changed) + b'],"gone":' + to_json(gone) + b"}"
    return sse.message(data.decode(), event="jobs")
