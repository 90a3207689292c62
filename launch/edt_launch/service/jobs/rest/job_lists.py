"""`GET /api/v1/jobs`: which jobs there are."""

from itertools import islice
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic_core import to_json

from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.http.dependencies import ContextDep, CurrentUser
from edt_launch.service.jobs import schemas
from edt_launch.service.jobs.rest.stream import JobList
from edt_launch.service.jobs.service import JobListQuery, items, jobs_page

router = APIRouter(tags=["jobs"])


@router.get("/jobs", response_model=schemas.Jobs)
def list_jobs(
    request: Request, context: ContextDep, user: CurrentUser, wanted: Annotated[JobListQuery, Query()]
) -> Response:
    """Live jobs and those that ended in the last hour, in the order of their submission."""
    if not wanted.model_fields_set - {"owner", "limit", "after"}:
        return _recent(request.app.state.job_list_cache.latest(), user, wanted)
    return Response(to_json(jobs_page(context, user, wanted)), media_type="application/json")


def _recent(job_list: JobList, user: UserRecord, wanted: JobListQuery) -> Response:
    """The listing that everybody asks for again and again, of what is ready as JSON."""
    owners, limit = items(wanted.owner), wanted.limit
    fitting = (
        job
        for job in job_list.values()
        if job.record.number > wanted.after and (owners is None or job.record.owner in owners)
    )
    jobs = list(islice(fitting, limit + 1))
    last = jobs[limit - 1].record.number if len(jobs) > limit else None
    shown = b",".join(job.to(user) for job in jobs[:limit])
    content = b'{"jobs":[%b],"next":%b}' % (shown, to_json(last))
    return Response(content, media_type="application/json")
