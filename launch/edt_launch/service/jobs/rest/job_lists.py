"""`GET /api/v1/jobs`: which jobs there are."""

from itertools import islice
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field
from pydantic_core import to_json

from edt_launch.cluster.allocation import HOST
from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.app.home import SEARCH_ID
from edt_launch.service.errors import InvalidError
from edt_launch.service.experiments.experiments import experiment_for
from edt_launch.service.experiments.spec import EXPERIMENT_ID
from edt_launch.service.http.dependencies import ContextDep, CurrentUser
from edt_launch.service.jobs.query import SORTS, JobQuery
from edt_launch.service.jobs.rest import schemas, views
from edt_launch.service.jobs.rest.stream import RECENT, JobList
from edt_launch.service.jobs.states import LIVE, State
from edt_launch.service.names import MOST_NAME, OWNERS, PLAIN

router = APIRouter(tags=["jobs"])

MOST = 1000
"""Jobs of one page."""


class JobListQuery(BaseModel):
    """What a list of jobs is asked for: those that fit all of these."""

    state: str | None = Field(None, max_length=256, description="Only in these, with commas between.")
    owner: str | None = Field(
        None, max_length=1024, pattern=f"^{OWNERS}$", description="Only these users', with commas between."
    )
    limit: int = Field(MOST, ge=1, le=MOST, description="Jobs of a page.")
    after: int = Field(0, ge=0, le=2**53, description="`next` of the page before.")
    everything: bool = Field(False, alias="all", description="Also those that ended long ago.")
    text: str = Field(
        "", max_length=MOST_NAME, pattern=f"^{PLAIN}$", description="In the name, or the id's beginning."
    )
    newest: bool = Field(False, description="The newest first, or the highest by `sort`.")
    host: str | None = Field(None, max_length=255, pattern=f"^{HOST}$", description="Only on this host.")
    experiment: str | None = Field(None, pattern=f"^{EXPERIMENT_ID}$", description="Only this one's runs.")
    search: str | None = Field(None, pattern=f"^{SEARCH_ID}$", description="Only this one's trials.")
    submitted_since: float | None = Field(None, ge=0, le=1e12)
    owner_text: str = Field(
        "", max_length=MOST_NAME, pattern=f"^{PLAIN}$", description="In the owner's name."
    )
    sort: Literal[SORTS] = Field(  # type: ignore[valid-type]  # one of a tuple
        "number", description="In the order of this field; `next` is then a place in the list."
    )

    def query(self, now: float) -> JobQuery:
        """The same for the database; without a state, jobs that live or have ended in the last hour.

        Raises:
            InvalidError: a state is none.
        """
        is_recent = self.state is None and not self.everything
        return JobQuery(
            states=LIVE if is_recent else states_of(self.state),
            ended_since=now - RECENT if is_recent else None,
            owners=_items(self.owner),
            **self.model_dump(exclude={"state", "owner", "everything"}),
        )


@router.get("/jobs", response_model=schemas.Jobs)
def list_jobs(
    request: Request, context: ContextDep, user: CurrentUser, wanted: Annotated[JobListQuery, Query()]
) -> Response:
    """Live jobs and those that ended in the last hour, in the order of their submission."""
    if not wanted.model_fields_set - {"owner", "limit", "after"}:
        return _recent(request.app.state.job_list_cache.latest(), user, wanted)
    return Response(to_json(jobs_page(context, user, wanted)), media_type="application/json")


def jobs_page(context: Context, user: UserRecord, wanted: JobListQuery) -> dict[str, Any]:
    """A page of jobs, like `schemas.Jobs`; those of an experiment are for whoever may see that."""
    if wanted.experiment is not None:
        experiment_for(context, user, wanted.experiment)
    page = context.store.jobs.page(wanted.query(context.clock()))
    return {"jobs": [views.job(job, user) for job in page.jobs], "next": page.next}


def _recent(job_list: JobList, user: UserRecord, wanted: JobListQuery) -> Response:
    """The listing that everybody asks for again and again, of what is ready as JSON."""
    owners, limit = _items(wanted.owner), wanted.limit
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


def states_of(text: str | None) -> frozenset[State] | None:
    """The states of a list with commas between; None for all of them."""
    names = _items(text)
    if names is None:
        return None
    try:
        return frozenset(map(State, names))
    except ValueError:
        raise InvalidError(f"state: {text!r} is not possible", f"use some of {', '.join(State)}") from None


def _items(text: str | None) -> list[str] | None:
    """The items of a list with commas between."""
    return None if text is None else [item.strip() for item in text.split(",")]
