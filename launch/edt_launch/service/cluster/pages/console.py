"""The console: hosts and instance groups."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from edt_launch.service.cluster import service
from edt_launch.service.cluster.pages.views.console import Group
from edt_launch.service.cluster.pages.views.console import groups as grouped
from edt_launch.service.http.dependencies import ContextDep, CurrentUser
from edt_launch.service.web import templating

router = APIRouter(prefix="/console")


@router.get("")
def first(user: CurrentUser) -> Response:
    """The first page of the console."""
    return RedirectResponse("/console/hosts", 303)


@router.get("/applications")
def applications(user: CurrentUser) -> Response:
    """The list of jobs: an application is a job."""
    return RedirectResponse("/jobs?state=all", 303)


@router.get("/consumers")
def consumers(user: CurrentUser) -> Response:
    """The shares: a consumer is an owner."""
    return RedirectResponse("/shares", 303)


@router.get("/groups")
async def groups(request: Request, context: ContextDep, user: CurrentUser) -> Response:
    """The departments, as instance groups."""

    def view() -> list[Group]:
        nodes, hosts = service.shares(context), service.hosts(context)
        return grouped(nodes, context.store.jobs.holders(), hosts)

    return await templating.shared_page(request, None, "console/groups.html", view)


@router.get("/hosts")
async def hosts(request: Request, context: ContextDep, user: CurrentUser) -> Response:
    """The machines."""
    return await templating.shared_page(
        request, user.is_admin, "console/hosts.html", lambda: service.hosts(context)
    )
