"""What a job has written besides its logs: `events`, `metrics`, `files`, `results` and `checkpoints`."""

import json
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from typing import Annotated, Any, BinaryIO, Literal
from urllib.parse import quote

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic_core import to_json

from edt_launch.core.files.growing_file import BLOCK_BYTES, Line
from edt_launch.core.files.plain_files import open_file
from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.errors import NotFoundError
from edt_launch.service.files import results as made
from edt_launch.service.files import tailing
from edt_launch.service.files.archives import zipping
from edt_launch.service.files.archives.packing import Member, members, pack, size_of
from edt_launch.service.files.rest import schemas as output_schemas
from edt_launch.service.files.rest.following import Offset, until_it_ends
from edt_launch.service.files.series import MAX_POINTS as POINTS
from edt_launch.service.files.service import (
    MAX_VALUES,
    ValueName,
    checked,
    checkpoint_folder,
    list_checkpoints,
    list_files,
)
from edt_launch.service.http import sse
from edt_launch.service.http.dependencies import ContextDep, CurrentUser
from edt_launch.service.jobs import schemas
from edt_launch.service.jobs.resize_reasons import explained

router = APIRouter(tags=["jobs"])

GZIP, ZIP, BYTES = "application/gzip", "application/zip", "application/octet-stream"
ARCHIVE: dict[int | str, dict[str, Any]] = {200: {"description": "A tar.gz", "content": {GZIP: {}}}}
ARCHIVES: dict[int | str, dict[str, Any]] = {
    200: {"description": "A tar.gz, or a zip", "content": {GZIP: {}, ZIP: {}}}
}


@router.get("/jobs/{job_id}/events", response_model=list[schemas.Event], responses=sse.RESPONSES)
def events(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    job_id: str,
    after: Offset = 0,
    follow: Annotated[bool, Query(description="Go on until the job ends; for server-sent events.")] = False,
    last_event_id: Annotated[str | None, Header(pattern="^[0-9]{1,15}$")] = None,
) -> StreamingResponse:
    """Every event of a job: a JSON list, or server-sent events if these are accepted."""
    job = context.job_of(job_id, user)
    path = context.home.job(job.id).output.events
    if sse.wanted(request):
        start = max(after, int(last_event_id or 0))
        is_over = until_it_ends(context, job.id) if follow else None
        found = _events(context, user, tailing.lines(path, start, is_over))
        return StreamingResponse(_as_events(found), media_type=sse.MEDIA_TYPE)
    found = _events(context, user, tailing.lines(path, after))
    return StreamingResponse(_as_list(found), media_type="application/json")


@router.get("/jobs/{job_id}/metrics", response_model=output_schemas.Metrics)
async def metrics(
    context: ContextDep,
    user: CurrentUser,
    job_id: str,
    name: Annotated[
        list[ValueName] | None, Query(max_length=MAX_VALUES, description="Values besides `loss`.")
    ] = None,
    points: Annotated[int, Query(ge=100, le=POINTS)] = POINTS,
) -> Response:
    """A job's course, from the last 64 MiB of its events: what it has reported, its size, its pauses."""
    found = await context.reads.run(user.name, partial(_metrics, context, user, job_id, name or (), points))
    return Response(to_json(found), media_type="application/json")


@router.get("/jobs/{job_id}/files", response_model=output_schemas.Files)
async def files(context: ContextDep, user: CurrentUser, job_id: str) -> Any:
    """The first 10,000 files that a job has made, as the archive of its results names them."""
    return await context.reads.run(user.name, partial(list_files, context, user, job_id))


@router.get(
    "/jobs/{job_id}/files/{name:path}",
    response_class=StreamingResponse,
    responses={200: {"description": "The file", "content": {BYTES: {}}}},
)
async def file(context: ContextDep, user: CurrentUser, job_id: str, name: str) -> StreamingResponse:
    """One of the files that a job has made, by its name in the list of them."""
    return await context.reads.run(user.name, partial(_file, context, user, job_id, name))


@router.get("/jobs/{job_id}/results", response_class=StreamingResponse, responses=ARCHIVES)
async def results(
    context: ContextDep,
    user: CurrentUser,
    job_id: str,
    name: Annotated[
        list[str] | None,
        Query(max_length=100, description="Only these files and folders."),
    ] = None,
    kind: Annotated[
        Literal["tar.gz", "zip"], Query(alias="format", description="A zip has no links and folders.")
    ] = "tar.gz",
) -> StreamingResponse:
    """What a job has made, as a tar.gz or zip: `model/`, `log/` and, of the folder that it runs in, `work/`.

    `work/` has the files that were not submitted or have changed since. While the job runs, what is there by
    now.
    """
    return await context.reads.run(user.name, partial(_results, context, user, job_id, name or (), kind))


@router.get("/jobs/{job_id}/checkpoints", response_model=output_schemas.Checkpoints)
async def checkpoints(context: ContextDep, user: CurrentUser, job_id: str) -> Any:
    """A job's newest 1,000 checkpoints, oldest first. Whether the checksums are right, `check` finds out."""
    return await context.reads.run(user.name, partial(list_checkpoints, context, user, job_id))


@router.get("/jobs/{job_id}/checkpoints/{name}/check", response_model=output_schemas.CheckedCheckpoint)
async def check_checkpoint(context: ContextDep, user: CurrentUser, job_id: str, name: str) -> Any:
    """Read a checkpoint and see whether its checksums are right."""
    state = await context.reads.run(user.name, partial(checked, context, user, job_id, name))
    return {"name": name, "state": state}


@router.get("/jobs/{job_id}/checkpoints/{name}", response_class=StreamingResponse, responses=ARCHIVE)
async def checkpoint(context: ContextDep, user: CurrentUser, job_id: str, name: str) -> StreamingResponse:
    """A checkpoint, as a tar.gz."""
    return await context.reads.run(user.name, partial(_checkpoint_archive, context, user, job_id, name))


def _metrics(
    context: Context, user: UserRecord, job_id: str, names: Sequence[str], points: int
) -> dict[str, Any]:
    job = context.job_of(job_id, user)
    course = context.series_cache.columns(context.home.job(job.id).output.events, names, points)
    return course | {"pauses": explained(course["pauses"], context.store.history.newest(job.id))}


def _file(context: Context, user: UserRecord, job_id: str, name: str) -> StreamingResponse:
    job = context.job_of(job_id, user)
    chosen = made.choose(made.members(context.home.job(job.id)), [name])
    try:
        content = open_file(chosen[0].path)
    except OSError:
        raise NotFoundError(
            f"{name[:200]!r} is no file of {job.id}", f"GET /api/v1/jobs/{job.id}/files lists them"
        ) from None
    try:
        context.check_result(os.fstat(content.fileno()).st_size)
    except BaseException:
        content.close()
        raise
    shown = quote(name.rpartition("/")[2], errors="replace")
    headers = {"Content-Disposition": f"attachment; filename*=utf-8''{shown}"}
    return StreamingResponse(
        context.reads.each(user.name, _blocks(content)), media_type=BYTES, headers=headers
    )


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while block := file.read(BLOCK_BYTES):
            yield block


def _results(
    context: Context, user: UserRecord, job_id: str, names: Sequence[str], kind: str
) -> StreamingResponse:
    job = context.job_of(job_id, user)
    chosen = made.choose(made.members(context.home.job(job.id)), names)
    if kind == "zip":
        packed = zipping.members((one.name, one.path) for one in chosen)
        context.check_result(zipping.size_of(packed))
        blocks = context.reads.each(user.name, zipping.pack(packed, is_announced=False))
        headers = {"Content-Disposition": f'attachment; filename="{job.id}-results.zip"'}
        return StreamingResponse(blocks, media_type=ZIP, headers=headers)
    return _archive(context, user, f"{job.id}-results", chosen)


def _checkpoint_archive(context: Context, user: UserRecord, job_id: str, name: str) -> StreamingResponse:
    folder = checkpoint_folder(context, user, job_id, name)
    return _archive(context, user, f"{job_id}-{name}", list(members(name, folder)))


async def _events(
    context: Context, user: UserRecord, looks: AsyncIterator[list[Line]]
) -> AsyncIterator[list[tuple[int, str]]]:
    """The events in each look, and the offset of what follows each; none in pauses."""
    async for lines in looks:
        if not lines:
            yield []
            continue
        async for found in context.reads.each(user.name, map(_parsed, [lines])):
            yield found


async def _as_list(events: AsyncIterator[list[tuple[int, str]]]) -> AsyncIterator[bytes]:
    separator = "["
    async for found in events:
        if found:
            yield (separator + ",".join(text for _, text in found)).encode()
            separator = ","
    yield b"[]" if separator == "[" else b"]"


async def _as_events(events: AsyncIterator[list[tuple[int, str]]]) -> AsyncIterator[bytes]:
    pauses = 0
    async for found in events:
        pauses = 0 if found else pauses + 1
        if found:
            yield b"".join(sse.message(text, number=offset) for offset, text in found)
        elif pauses * tailing.PAUSE >= sse.KEEP_ALIVE_INTERVAL:
            pauses = 0
            yield sse.KEEP_ALIVE


def _parsed(lines: list[Line]) -> list[tuple[int, str]]:
    return [(line.end, text) for line in lines if (text := _clean(line.text)) is not None]


def _clean(line: bytes) -> str | None:
    """The line if it is an event; Python's NaN, which is no JSON, becomes null."""
    try:
        event = json.loads(line, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None
    return json.dumps(event) if isinstance(event, dict) else None


def _archive(context: Context, user: UserRecord, name: str, packed: list[Member]) -> StreamingResponse:
    context.check_result(size_of(packed))
    headers = {"Content-Disposition": f'attachment; filename="{name}.tar.gz"'}
    return StreamingResponse(context.reads.each(user.name, pack(packed)), media_type=GZIP, headers=headers)
