"""`/api/v1/jobs/{id}/logs`: what a job's workers print."""

from collections.abc import AsyncIterator, Callable
from typing import Annotated, BinaryIO

from fastapi import APIRouter, Query
from fastapi.responses import PlainTextResponse, StreamingResponse

from edt_launch.service import tailing
from edt_launch.service.api.context import Here, User
from edt_launch.service.api.following import until_it_ends

router = APIRouter(tags=["jobs"])


@router.get("/jobs/{job_id}/logs", response_class=PlainTextResponse)
def logs(
    here: Here,
    user: User,
    job_id: str,
    rank: Annotated[int | None, Query(ge=0, le=2**20, description="Only this rank's lines.")] = None,
    follow: Annotated[bool, Query(description="Go on until the job ends.")] = False,
    tail: Annotated[
        int | None, Query(ge=0, le=10**6, description="Only so many last lines, and what follows.")
    ] = None,
) -> StreamingResponse:
    """All workers' lines, each with `[rank]`, and what `edt-launch` says; or one rank's lines."""
    job = here.job_of(job_id, user)
    folder = here.home.job(job.id)
    path = folder.launcher_log if rank is None else folder.output.rank_log(str(rank))
    blocks = tailing.read(path, _start(tail), until_it_ends(here, job.id) if follow else None)
    return StreamingResponse(_without_pauses(blocks), media_type="text/plain; charset=utf-8")


def _start(tail: int | None) -> Callable[[BinaryIO], int]:
    return lambda file: 0 if tail is None else tailing.start_of_last_lines(file, tail)


async def _without_pauses(blocks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async for block in blocks:
        if block:
            yield block
