"""`/api/v1/datasets`: what users upload; `/api/v1/data`: what is in the data folder."""

import os
import pathlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated, Any, BinaryIO, Literal
from urllib.parse import quote

from fastapi import APIRouter, BackgroundTasks, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.data import folders, service
from edt_launch.service.data.data_set import NAME
from edt_launch.service.errors import InvalidError, ServiceError, TooLargeError
from edt_launch.service.files.archives import packing, zipping
from edt_launch.service.http.dependencies import ContextDep, CurrentUser, carry_out
from edt_launch.service.names import PLAIN, USER

router = APIRouter(tags=["data"])

BLOCK = 2**20
"""Bytes that are written, or sent, at a time."""

GZIP, ZIP, BYTES = "application/gzip", "application/zip", "application/octet-stream"

PathInData = Annotated[
    str, Query(max_length=4096, pattern=f"^{PLAIN}$", description="Below the data folder; empty: all of it.")
]
Owner = Annotated[str, Path(pattern=f"^{USER}$", description="The user whose data set it is.")]
SetName = Annotated[str, Path(pattern=f"^{NAME}$", description="Its name.")]
FilePath = Annotated[str, Path(max_length=4096, description="A file's path in the data set.")]
Replacing = Annotated[bool, Query(description="Put it in the place of what is there.")]


class DataSet(BaseModel):
    """A data set: a folder that a user has uploaded."""

    owner: str
    name: str
    path: str = Field(description="Its place below the data folder, for `source` of an experiment.")
    location: str = Field(description="The folder, on the hosts, for jobs of other kinds.")
    files: int | None = Field(description="As uploaded; null for a folder made by hand.")
    size: int | None = Field(description="Bytes, as uploaded; null for a folder made by hand.")
    time: float = Field(description="When it was changed last.")
    used_by: list[str] = Field(description="Jobs and searches that have not ended and name it.")


class DataSets(BaseModel):
    """Data sets, by owner and name."""

    datasets: list[DataSet]
    complete: bool = Field(description="Whether these are all; at most 1,000 are listed.")


class FileInFolder(BaseModel):
    """A file below the data folder."""

    name: str
    size: int
    time: float


class Folder(BaseModel):
    """What is in a folder below the data folder, without links."""

    path: str
    folders: list[str]
    files: list[str]
    details: list[FileInFolder] = Field(description="Of the files.")
    complete: bool = Field(description="Whether this is all; of either at most 1,000 are listed.")


def _body(what: str) -> dict[str, Any]:
    content = {BYTES: {"schema": {"type": "string", "format": "binary"}}}
    return {"requestBody": {"description": what, "required": True, "content": content}}


@router.get("/datasets", response_model=DataSets)
def list_sets(context: ContextDep, user: CurrentUser) -> Any:
    """The data sets of all users."""
    return service.all_sets(context)


@router.get("/datasets/{owner}/{name}", response_model=DataSet)
def show(context: ContextDep, user: CurrentUser, owner: Owner, name: SetName) -> Any:
    """A data set."""
    return service.one_set(context, owner, name)


@router.put(
    "/datasets/{owner}/{name}",
    status_code=201,
    response_model=DataSet,
    openapi_extra=_body("A tar, tar.gz or zip."),
)
async def put(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    owner: Owner,
    name: SetName,
    replace: Replacing = False,
) -> Any:
    """Make a data set of the archive that is sent; one of the same name is refused, or replaced."""
    check = partial(service.check_new, context, user, owner, name, is_replacing=replace)
    async with _received(request, context, check) as file:
        make = partial(service.put, context, user, owner, name, file, is_replacing=replace)
        return await context.data_uploads.run(user.name, make)


@router.delete("/datasets/{owner}/{name}", status_code=204, response_class=Response)
def delete(
    context: ContextDep, user: CurrentUser, owner: Owner, name: SetName, afterwards: BackgroundTasks
) -> None:
    """Delete a data set that no unfinished job or search uses."""
    carry_out([service.delete(context, user, owner, name)], afterwards)


@router.put(
    "/datasets/{owner}/{name}/files/{path:path}",
    status_code=201,
    response_model=DataSet,
    openapi_extra=_body("The file."),
)
async def put_file(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    owner: Owner,
    name: SetName,
    path: FilePath,
    replace: Replacing = False,
) -> Any:
    """Put the file that is sent into a data set, which is made if there is none."""
    check = partial(service.check_change, context, user, owner, *([name] if replace else []))
    async with _received(request, context, check) as file:
        files = [(path, pathlib.Path(file.name))]
        make = partial(service.put_files, context, user, owner, name, files, is_replacing=replace)
        return await context.data_uploads.run(user.name, make)


@router.delete("/datasets/{owner}/{name}/files/{path:path}", status_code=204, response_class=Response)
def delete_file(context: ContextDep, user: CurrentUser, owner: Owner, name: SetName, path: FilePath) -> None:
    """Delete a file of a data set."""
    service.delete_file(context, user, owner, name, path)


@router.get("/data", response_model=Folder)
def data(context: ContextDep, user: CurrentUser, path: PathInData = "") -> Any:
    """What is in a folder below the data folder, from which experiments choose theirs."""
    found = service.listing(context, path)
    files = [one._asdict() for one in found.files]
    return {**vars(found), "files": [one["name"] for one in files], "details": files}


@router.get(
    "/data/file",
    response_class=StreamingResponse,
    responses={200: {"description": "The file", "content": {BYTES: {}}}},
)
async def file(context: ContextDep, user: CurrentUser, path: PathInData) -> StreamingResponse:
    """A file below the data folder."""
    content = await context.reads.run(user.name, partial(_opened, context, path))
    size = os.fstat(content.fileno()).st_size
    shown = quote(pathlib.PurePosixPath(path).name, errors="replace")
    headers = {"Content-Disposition": f"attachment; filename*=utf-8''{shown}", "Content-Length": str(size)}
    blocks = context.reads.each(user.name, _blocks(content, size))
    return StreamingResponse(blocks, media_type=BYTES, headers=headers)


@router.get(
    "/data/archive",
    response_class=StreamingResponse,
    responses={200: {"description": "A tar.gz, or a zip", "content": {GZIP: {}, ZIP: {}}}},
)
async def archive(
    context: ContextDep,
    user: CurrentUser,
    path: PathInData,
    kind: Annotated[
        Literal["tar.gz", "zip"], Query(alias="format", description="A zip has no links and folders.")
    ] = "tar.gz",
) -> StreamingResponse:
    """A folder below the data folder, with all that is in it, as a tar.gz or zip."""
    return await context.reads.run(user.name, partial(_archive, context, user, path, kind))


@asynccontextmanager
async def _received(request: Request, context: Context, check: Callable[[], None]) -> AsyncIterator[BinaryIO]:
    """The body of a request in a file on the disk of the data folder, if a check lets it be sent."""
    try:
        await run_in_threadpool(check)
    except ServiceError:
        if request.headers.get("expect", "").lower() != "100-continue":
            async for _ in request.stream():  # who is still sending reads no answer
                pass
        raise
    with context.data_sets.received(int(request.headers.get("content-length", "0"))) as file:
        try:
            waiting = bytearray()
            async for chunk in _chunks(request):
                waiting += chunk
                if len(waiting) >= BLOCK:
                    await run_in_threadpool(file.write, bytes(waiting))
                    waiting.clear()
            await run_in_threadpool(file.write, bytes(waiting))
            file.flush()
            file.seek(0)
            yield file
        finally:
            await run_in_threadpool(_discard, file)  # which takes a while if it is large


def _discard(file: BinaryIO) -> None:
    file.close()
    pathlib.Path(file.name).unlink(missing_ok=True)


async def _chunks(request: Request) -> AsyncIterator[bytes]:
    try:
        async for chunk in request.stream():
            yield chunk
    except ClientDisconnect:
        raise InvalidError("the upload broke off: nothing was stored", "send it again") from None


def _opened(context: Context, path: str) -> BinaryIO:
    content = service.opened(context, path)
    try:
        _check_size(context, os.fstat(content.fileno()).st_size)
    except BaseException:
        content.close()
        raise
    return content


def _check_size(context: Context, size: int) -> None:
    if size > context.settings.max_data:
        raise TooLargeError(
            f"the files have {size:,} bytes, more than max_data, {context.settings.max_data:,}",
            "fetch parts of it, or have an administrator raise max_data",
        )


def _blocks(file: BinaryIO, size: int) -> Iterator[bytes]:
    """So many bytes of a file, which were announced; it ends early if it has become shorter."""
    with file:
        while size and (block := file.read(min(BLOCK, size))):
            size -= len(block)
            yield block


def _archive(context: Context, user: UserRecord, path: str, kind: str) -> StreamingResponse:
    found = service.packed(context, path)
    _check_size(context, found.size)
    name = quote(pathlib.PurePosixPath(folders.normal(path)).name or "data", errors="replace")
    headers = {
        "Content-Disposition": f"attachment; filename*=utf-8''{name}.{kind}",
        "EDT-Complete": "true" if found.complete else "false",
    }
    if kind == "zip":
        files = zipping.members(((one.name, one.path) for one in found.members), found.reader)
        blocks = zipping.pack(files, found.reader, is_announced=False)
    else:
        blocks = packing.pack(found.members, found.reader)
    media_type = ZIP if kind == "zip" else GZIP
    return StreamingResponse(context.reads.each(user.name, blocks), media_type=media_type, headers=headers)
