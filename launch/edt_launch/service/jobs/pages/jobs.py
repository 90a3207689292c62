"""All jobs."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.db.paging import PageQuery
from edt_launch.service.errors import InvalidError
from edt_launch.service.experiments import runs
from edt_launch.service.http.dependencies import ContextDep, CurrentUser
from edt_launch.service.jobs import service
from edt_launch.service.jobs.pages.views.jobs import TIMES, Filter, JobsView, jobs_view, refused
from edt_launch.service.web import templating
from edt_launch.service.web.form_fields import parsed

router = APIRouter()

PAGE = 100
"""Jobs of a page."""

SUGGESTED = 20
"""Experiments, and searches, that the box suggests: the newest."""


@router.get("/jobs")
async def show(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    wanted: Annotated[Filter, Query()],
) -> Response:
    """A page of those that are looked for, or the filter again with what is wrong with it."""
    if (find := request.query_params.get("find")) is not None:
        return RedirectResponse(wanted.found(find).address(), 303)
    try:
        _query(wanted, 0.0)
    except InvalidError as error:
        told = error.message
        return templating.page(request, "jobs.html", status=error.status, view=refused(wanted, told))
    # Others choose their own jobs alone.
    return await templating.shared_page(
        request, user.confined_to, "jobs.html", lambda: _view(context, user, wanted)
    )


def _query(wanted: Filter, now: float) -> service.JobListQuery:
    if wanted.last and wanted.last not in TIMES:
        raise InvalidError(f"last: {wanted.last!r} is not possible", f"choose one of {', '.join(TIMES)}")
    asked = parsed(service.JobListQuery, wanted.rest(now) | {"limit": PAGE})
    service.states_of(asked.state)
    return asked


def _view(context: Context, user: UserRecord, wanted: Filter) -> JobsView:
    now = context.clock()
    page = service.jobs_page(context, user, _query(wanted, now))
    found = runs.experiments_of(context, user, [job.id for job in page["jobs"]])
    experiments = {job: (one.id, one.name) for job, one in found.items()}
    owners = [(f"owner:{owner}", "") for owner in sorted({job.owner for job in page["jobs"]})]
    tags = [(f"tag:{tag}", "") for tag in sorted({tag for job in page["jobs"] for tag in job.tags})]
    suggested = owners + tags + _suggested(context, user)
    return jobs_view(wanted, page["jobs"], page["next"], now, experiments, suggested)


def _suggested(context: Context, user: UserRecord) -> list[tuple[str, str]]:
    """Hosts, and the newest experiments and searches that the user may see."""
    who = user.confined_to
    hosts = [(f"host:{one.name}", "") for one in context.store.hosts.all()]
    newest = PageQuery(SUGGESTED, newest=True)
    experiments, _ = newest.cut(context.store.experiments.page(who, None, None, newest))
    searches, _ = newest.cut(context.store.experiments.search_page(who, newest))
    return [
        *hosts,
        *((f"experiment:{one.id}", one.name) for one in experiments),
        *((f"search:{one.id}", one.name) for one in searches),
    ]
