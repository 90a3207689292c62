"""The console: applications, instance groups and hosts."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.cluster import service
from edt_launch.service.cluster.pages.views import console as views
from edt_launch.service.errors import InvalidError
from edt_launch.service.http.dependencies import ContextDep, CurrentUser
from edt_launch.service.jobs.query import SORTS
from edt_launch.service.jobs.service import JobListQuery, jobs_page
from edt_launch.service.names import MOST_NAME, PLAIN
from edt_launch.service.web import templating

router = APIRouter(prefix="/console")

PAGE = 100
"""Applications of a page."""


@router.get("")
def first(user: CurrentUser) -> Response:
    """The first page of the console."""
    return RedirectResponse("/console/applications", 303)


@router.get("/applications")
async def applications(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    column: Annotated[str, Query(max_length=16)] = "text",
    text: Annotated[str, Query(max_length=MOST_NAME, pattern=f"^{PLAIN}$")] = "",
    sort: Annotated[str, Query(pattern=f"^(-?({'|'.join(SORTS)}))?$")] = "",
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
) -> Response:
    """A page of all jobs that a filter leaves, also of those that ended long ago."""
    if column not in views.FILTERED:
        raise InvalidError(
            f"column: {column!r} is not possible", f"choose one of {', '.join(views.FILTERED)}"
        )
    wanted = views.Filter(column, text.strip(), sort, after)
    who = None if user.is_admin else user.name  # others choose their own jobs alone
    return await templating.shared_page(
        request, who, "console/applications.html", lambda: _applications(context, user, wanted)
    )


@router.get("/groups")
async def groups(request: Request, context: ContextDep, user: CurrentUser) -> Response:
    """The departments, as instance groups."""

    def view() -> views.Groups:
        nodes, hosts = service.shares(context), service.hosts(context)
        return views.groups(nodes, context.store.jobs.holders(), hosts)

    return await templating.shared_page(request, None, "console/groups.html", view)


@router.get("/hosts")
async def hosts(request: Request, context: ContextDep, user: CurrentUser) -> Response:
    """The machines."""
    is_admin = user.is_admin

    def view() -> views.Hosts:
        known = service.hosts(context)
        return views.hosts_view(known, context.clock(), is_admin=is_admin)

    return await templating.shared_page(request, is_admin, "console/hosts.html", view)


def _applications(context: Context, user: UserRecord, wanted: views.Filter) -> views.Applications:
    if wanted.fits_nothing:
        return views.applications(wanted, [], None, context.clock())
    query = JobListQuery.model_validate({**wanted.rest(), "limit": PAGE, "after": wanted.after})
    page = jobs_page(context, user, query)
    return views.applications(wanted, page["jobs"], page["next"], context.clock())
