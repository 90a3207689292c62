"""`/api/v1/jobs/{id}/events` and `metrics`: a job's course, from its file of events."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import StreamingResponse

from edt_launch.core.event_codec import read_line
from edt_launch.core.events import Progress
from edt_launch.core.lines import LineSplitter
from edt_launch.core.plain_files import NoFileError
from edt_launch.service import tailing
from edt_launch.service.api import schemas, sse
from edt_launch.service.api.context import Here, User
from edt_launch.service.api.following import until_it_ends
from edt_launch.service.series import Series
from edt_launch.service.tailing import IsOver

router = APIRouter(tags=["jobs"])

Offset = Annotated[
    int, Query(ge=0, le=2**53, description="Bytes of the file to leave out: the last event's id.")
]


@router.get("/jobs/{job_id}/events", response_model=list[schemas.Event], responses=sse.RESPONSES)
def events(
    request: Request,
    here: Here,
    user: User,
    job_id: str,
    after: Offset = 0,
    follow: Annotated[bool, Query(description="Go on until the job ends; for server-sent events.")] = False,
    last_event_id: Annotated[str | None, Header(pattern="^[0-9]{1,15}$")] = None,
) -> StreamingResponse:
    """Every event of a job: a JSON list, or server-sent events if these are accepted."""
    job = here.job_of(job_id, user)
    path = here.home.job(job.id).output.events
    if sse.wanted(request):
        start = max(after, int(last_event_id or 0))
        is_over = until_it_ends(here, job.id) if follow else None
        return StreamingResponse(_as_events(path, start, is_over), media_type=sse.MEDIA_TYPE)
    return StreamingResponse(_as_list(path, after), media_type="application/json")


@router.get("/jobs/{job_id}/metrics", response_model=schemas.Metrics)
def metrics(here: Here, user: User, job_id: str) -> Any:
    """Step, loss, throughput and size over time, from the last 64 MiB of the job's events."""
    job = here.job_of(job_id, user)
    series = Series()
    try:
        for line in tailing.recent_lines(here.home.job(job.id).output.events):
            if isinstance(event := read_line(line), Progress):
                series.observe(event)
    except (FileNotFoundError, NoFileError):
        pass
    return series.columns()


async def _lines(path: Path, start: int, is_over: IsOver | None) -> AsyncIterator[tuple[int, str] | None]:
    """Each whole event, and the offset of what follows it; None in pauses."""
    lines = LineSplitter(start)
    async for block in tailing.read(path, lambda _: start, is_over):
        if not block:
            yield None
        for line in lines.feed(block):
            text = _clean(line)
            if text is not None:
                yield lines.offset, text


async def _as_list(path: Path, start: int) -> AsyncIterator[bytes]:
    separator = b"["
    async for found in _lines(path, start, None):
        if found is not None:
            yield separator + found[1].encode()
            separator = b","
    yield b"[]" if separator == b"[" else b"]"


async def _as_events(path: Path, start: int, is_over: IsOver | None) -> AsyncIterator[bytes]:
    pauses = 0
    async for found in _lines(path, start, is_over):
        pauses = pauses + 1 if found is None else 0
        if found is not None:
            yield sse.message(found[1], number=found[0])
        elif pauses * tailing.PAUSE >= sse.KEEP_ALIVE_INTERVAL:
            pauses = 0
            yield sse.KEEP_ALIVE


def _clean(line: bytes) -> str | None:
    """The line if it is an event; Python's NaN, which is no JSON, becomes null."""
    try:
        event = json.loads(line, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None
    return json.dumps(event) if isinstance(event, dict) else None
