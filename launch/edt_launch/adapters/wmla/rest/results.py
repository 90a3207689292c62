"""`/execs/{name}/log` and `/result`: what a job has told, and what it has made."""

import codecs
import json
import secrets
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, BinaryIO, Literal

import structlog
from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse
from starlette.types import Send

from edt_launch.adapters.wmla.answers import files
from edt_launch.adapters.wmla.answers.rows import training_rows
from edt_launch.adapters.wmla.answers.views import Execution
from edt_launch.adapters.wmla.hypersearch.searches import METRIC_FILE
from edt_launch.adapters.wmla.rest.authenticator import Style
from edt_launch.adapters.wmla.rest.lookup import Manner, Named
from edt_launch.core.files.growing_file import start_of_last_lines
from edt_launch.core.files.walking import walk
from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.errors import ConflictError
from edt_launch.service.files import rank_lines, tailing
from edt_launch.service.files.archives import zipping
from edt_launch.service.http.dependencies import ContextDep, CurrentUser

log = structlog.get_logger()

router = APIRouter()

LogType = Annotated[Literal["outlog", "errlog", "outerrlog"], Query(alias="logType")]

MAX_FILES = 100_000
"""Files and folders of a result: where each file is in the zip is remembered until its end."""


class _Archive(StreamingResponse):
    """A zip; if it cannot be finished the connection breaks, so that nobody takes it for a whole one."""

    async def stream_response(self, send: Send) -> None:
        try:
            await super().stream_response(send)
        except zipping.ChangedError as error:  # the server closes the connection of what has no end
            log.warning("a result is not sent to its end", reason=str(error))


@router.get("/execs/{name}/log")
def show_log(
    request: Request, execution: Named, style: Manner, kind: LogType = "outlog"
) -> StreamingResponse:
    """A job's log: a JSON string in the manner of 1.2.x, else plain text."""
    output, errors = files.training_log(execution), [files.main_output(execution, files.STDERR)]
    paths = {"outlog": output, "errlog": errors, "outerrlog": [*output, *errors]}[kind]
    accepted = request.headers.get("accept", "")
    wants_text = "text/plain" in accepted or (style is Style.MODERN and "application/json" not in accepted)
    return as_text(paths) if wants_text else _as_json(paths)


@router.get("/execs/{name}/result")
async def result(context: ContextDep, user: CurrentUser, execution: Named) -> StreamingResponse:
    """A zip of `model/` and of the metrics; what is there by now while the job runs."""
    return await context.reads.run(user.name, partial(_result, context, user, execution))


def _result(context: Context, user: UserRecord, execution: Execution) -> StreamingResponse:
    paths = list(islice(_files(execution), MAX_FILES + 1))
    if len(paths) > MAX_FILES:
        raise ConflictError(
            f"the result has more than {MAX_FILES:,} files and folders",
            f"fetch it with: edt results {execution.job.id}",
        )
    packed = zipping.members(paths)
    size = zipping.size_of(packed)
    context.check_result(size)
    number = f"{int(context.clock() * 1e6)}-{secrets.randbelow(10**9)}"
    name = f"dlpd-model-{number}{execution.names.id}-result.zip"
    headers = {
        # Clients take this apart by `;` and `=`: no spaces, and the size last.
        "Content-Disposition": f"attachment;filename={name};size={size}",
        "Content-Length": str(size),
    }
    blocks = context.reads.each(user.name, zipping.pack(packed))
    return _Archive(blocks, media_type="application/octet-stream", headers=headers)


def _files(execution: Execution) -> Iterator[tuple[str, Path]]:
    """The files of a job's result and their names in it; links are left out."""
    root = execution.result.root
    for path in walk(execution.result.model):
        yield path.relative_to(root).as_posix(), path
    yield METRIC_FILE, root / METRIC_FILE


def as_text(paths: Sequence[Path], last: int | None = None, rank: int | None = None) -> StreamingResponse:
    """The files' content, one after the other; of each only the `last` lines if that is given.

    If `rank` is given, they are logs of jobs, and only its lines are sent.
    """
    return StreamingResponse(_blocks(paths, last, rank), media_type="text/plain; charset=utf-8")


def _as_json(paths: Sequence[Path]) -> StreamingResponse:
    """The same as a JSON string, which notebooks read as a table: without results of validations."""
    content = training_rows(_blocks(paths, None))
    return StreamingResponse(_escaped(content), media_type="application/json")


async def _blocks(paths: Sequence[Path], last: int | None, rank: int | None = None) -> AsyncIterator[bytes]:
    def start(file: BinaryIO) -> int:
        return 0 if last is None else start_of_last_lines(file, last)

    for path in paths:
        blocks = tailing.read(path, start) if rank is None else rank_lines.read(path, rank, tail=last)
        async for block in blocks:
            if block:
                yield block


async def _escaped(blocks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    yield b'"'
    async for block in blocks:
        yield json.dumps(decoder.decode(block))[1:-1].encode()
    yield json.dumps(decoder.decode(b"", final=True))[1:-1].encode() + b'"'
