"""What the workers of a job print: `/api/v1/jobs/ID/logs`, and searches in it."""

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi.responses import PlainTextResponse, StreamingResponse

from edt_launch.core import log_times
from edt_launch.core.log_times import Part
from edt_launch.core.plain_files import NoFileError, open_file
from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.app.home import JobDir
from edt_launch.service.errors import InvalidError
from edt_launch.service.files import log_search, tailing
from edt_launch.service.files.rest import schemas as output_schemas
from edt_launch.service.files.rest.following import Offset, until_it_ends
from edt_launch.service.http.dependencies import ContextDep, CurrentUser
from edt_launch.service.names import PLAIN

router = APIRouter(tags=["jobs"])

MOST_SHOWN = 1000
"""Characters that are given of a line that was searched for."""

ABSENT = (FileNotFoundError, NotADirectoryError, PermissionError, NoFileError)
"""What reading a log raises that is not there, or with which the job has done as it likes."""

Level = Literal["", "warning", "error"]
"""The least level of lines that are looked for; empty for any."""

Time = Annotated[float | None, Query(ge=0, le=2**40, allow_inf_nan=False)]


@dataclass(frozen=True)
class LogQuery:
    """What is searched for in a log; `since` and `until` are seconds since 1970.

    `launcher`: only what `edt-launch` itself has printed.
    """

    text: str = ""
    rank: int | None = None
    after: int = 0
    level: Level = ""
    since: float | None = None
    until: float | None = None
    launcher: bool = False

    @property
    def has_bounds(self) -> bool:
        """Whether only lines of some time are wanted."""
        return self.since is not None or self.until is not None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is searched for."""
        return not (self.text or self.level or self.launcher or self.has_bounds)


@router.get("/jobs/{job_id}/logs", response_class=PlainTextResponse)
def logs(
    context: ContextDep,
    user: CurrentUser,
    job_id: str,
    rank: Annotated[int | None, Query(ge=0, le=2**20, description="Only this rank's lines.")] = None,
    follow: Annotated[bool, Query(description="Go on until the job ends.")] = False,
    tail: Annotated[
        int | None, Query(ge=0, le=10**6, description="Only so many last lines, and what follows.")
    ] = None,
    after: Offset = 0,
) -> StreamingResponse:
    """All workers' lines, each with `[rank]`, and what `edt-launch` says; or one rank's lines."""
    job = context.job_of(job_id, user)
    blocks = tailing.read(
        context.home.job(job.id).log_of(rank),
        lambda file: after if tail is None else max(after, tailing.start_of_last_lines(file, tail)),
        until_it_ends(context, job.id) if follow else None,
    )
    without_pauses = (block async for block in blocks if block)
    return StreamingResponse(without_pauses, media_type="text/plain; charset=utf-8")


@router.get("/jobs/{job_id}/logs/search", response_model=output_schemas.LogHits)
async def search_logs(
    context: ContextDep,
    user: CurrentUser,
    job_id: str,
    text: Annotated[str, Query(max_length=256, pattern=f"^{PLAIN}$", description="In whatever case.")] = "",
    rank: Annotated[int | None, Query(ge=0, le=2**20, description="Only in this rank's log.")] = None,
    after: Annotated[int, Query(ge=0, le=2**53, description="`next` of the answer before.")] = 0,
    level: Annotated[
        Level, Query(description="Only lines that look like warnings and errors, or like errors.")
    ] = "",
    since: Annotated[Time, Query(description="Only lines printed then or later; seconds since 1970.")] = None,
    until: Annotated[Time, Query(description="Only lines printed before that.")] = None,
    launcher: Annotated[bool, Query(description="Only what `edt-launch` itself has printed.")] = False,
) -> Any:
    """The lines of a log that have a text, a level, were printed in some time, or by the launcher.

    The first 1,000 in the next 64 MiB. When lines were printed is known to ten seconds, or a thousandth of
    the job's age: lines from shortly before and after are found, too.
    """
    if launcher and rank is not None:
        raise InvalidError(f"rank {rank} and launcher are different logs", "ask for the lines of one of them")
    wanted = LogQuery(text, rank, after, level, since, until, launcher)
    if wanted.is_empty:
        raise InvalidError(
            "none of text, level, since, until and launcher is given",
            "say what to look for, or ask for /logs",
        )
    return await context.reads.run(user.name, partial(find_lines, context, user, job_id, wanted))


def find_lines(context: Context, user: UserRecord, job_id: str, wanted: LogQuery) -> dict[str, Any]:
    """The answer of a search in a log, like `output_schemas.LogHits`."""
    files = context.home.job(context.job_of(job_id, user).id)
    part = _part(files, wanted)
    after = max(wanted.after, part.start)
    path = files.log_of(wanted.rank)
    try:
        found, following = log_search.search(
            path, wanted.text, after, level=wanted.level, until=part.end, only_launcher=wanted.launcher
        )
    except ABSENT:
        return {"hits": [], "next": None}
    hits = [{"offset": one.offset, "text": one.line.decode(errors="replace")[:MOST_SHOWN]} for one in found]
    return {"hits": hits, "next": following}


def _part(files: JobDir, wanted: LogQuery) -> Part:
    since, until = wanted.since, wanted.until
    if not wanted.has_bounds:
        return Part(0, None)
    if since is not None and until is not None and since >= until:
        raise InvalidError(
            f"since, {_utc(since)}, is not before until, {_utc(until)}", "give the earlier time first"
        )
    path = files.log_of(wanted.rank)
    try:
        found = log_times.part(tailing.recent_lines(files.output.log_times), path.name, since, until)
    except ABSENT:
        found = None
    if found is None and _has_lines(path):
        raise InvalidError(
            f"nothing says when the lines of {path.name} were printed", "search without since and until"
        )
    return found or Part(0, None)


def _utc(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="seconds")


def _has_lines(path: Path) -> bool:
    try:
        with open_file(path) as file:
            return os.fstat(file.fileno()).st_size > 0
    except ABSENT:
        return False
