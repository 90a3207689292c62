"""What the workers of a job print: `/api/v1/jobs/ID/logs`, and searches in it."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import PlainTextResponse, StreamingResponse

from edt_launch.core.files.growing_file import start_of_last_lines
from edt_launch.service.errors import InvalidError
from edt_launch.service.files import rank_lines, tailing
from edt_launch.service.files.log_query import Level, LogQuery, find_lines
from edt_launch.service.files.rest import schemas as output_schemas
from edt_launch.service.files.rest.following import Offset, until_it_ends
from edt_launch.service.http.dependencies import ContextDep, CurrentUser
from edt_launch.service.http.schemas import UnixTime
from edt_launch.service.names import PLAIN

router = APIRouter(tags=["jobs"])


@router.get("/jobs/{job_id}/logs", response_class=PlainTextResponse)
def logs(
    context: ContextDep,
    user: CurrentUser,
    job_id: str,
    rank: Annotated[
        int | None, Query(ge=0, le=2**20, description="Only this rank's lines, without the `[rank]`.")
    ] = None,
    follow: Annotated[bool, Query(description="Go on until the job ends.")] = False,
    tail: Annotated[
        int | None, Query(ge=0, le=10**6, description="Only so many last lines, and what follows.")
    ] = None,
    after: Offset = 0,
) -> StreamingResponse:
    """All workers' lines, each with `[rank]`, and what `edt-launch` says; or one rank's lines.

    `after` is a place in the log of all.
    """
    job = context.job_of(job_id, user)
    path = context.home.job(job.id).launcher_log
    is_over = until_it_ends(context, job.id) if follow else None
    if rank is None:
        blocks = tailing.read(
            path, lambda file: after if tail is None else max(after, start_of_last_lines(file, tail)), is_over
        )
    else:
        blocks = rank_lines.read(path, rank, after, tail, is_over)
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
    since: Annotated[
        UnixTime | None, Query(description="Only lines printed then or later; seconds since 1970.")
    ] = None,
    until: Annotated[UnixTime | None, Query(description="Only lines printed before that.")] = None,
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
