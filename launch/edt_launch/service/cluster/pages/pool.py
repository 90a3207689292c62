"""The pool: who has which device, and who had."""

import csv
import io
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Query, Request, Response
from fastapi.responses import RedirectResponse

from edt_launch.cluster.allocation import HOST
from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.cluster import pictures, service
from edt_launch.service.cluster.pages.views.pool import WINDOWS, PoolView, drain_question, pool_view
from edt_launch.service.errors import InvalidError, NotFoundError
from edt_launch.service.http.dependencies import ContextDep, CurrentAdmin, CurrentUser, HostName
from edt_launch.service.jobs import views as answers
from edt_launch.service.jobs.forecast.forecast import upcoming
from edt_launch.service.web import templating

router = APIRouter()

Back = Literal["/pool", "/console/hosts"]
"""The pages from which hosts are drained."""


@router.get("/")
def first(user: CurrentUser) -> Response:
    """The first page."""
    return RedirectResponse("/pool", 303)


@router.get("/pool")
async def show(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    window: Annotated[str, Query(max_length=16)] = "1 h",
    host: Annotated[str, Query(max_length=255, pattern=f"^({HOST})?$")] = "",
) -> Response:
    """The pool now, and in a window of time that ends now; of a large pool, hosts, or the slots of one."""
    if window not in WINDOWS:
        raise InvalidError(f"window: {window!r} is not possible", f"choose one of {', '.join(WINDOWS)}")
    had, jobs = await pictures.latest(context, WINDOWS[window]), await pictures.holders(context)
    following, today = await upcoming(context), sum((await pictures.hours_today(context)).values())

    if host and all(one["host"] != host for one in had["hosts"]):
        raise NotFoundError(f"the pool has no host {host!r}", "choose one of its list")

    def view() -> PoolView:
        cluster = answers.cluster(context.store.hosts.all(), jobs, context.store.jobs.suspended())
        now = context.clock()
        return pool_view(cluster, jobs, had, following, today, window, now, host, is_admin=user.is_admin)

    return await templating.shared_page(request, user.is_admin, "pool.html", view)


@router.get("/pool/usage.csv")
async def usage(context: ContextDep, user: CurrentUser) -> Response:
    """The hours of devices that each owner has had since midnight, UTC."""
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow(["owner", "device_hours"])
    rows.writerows([owner, round(hours, 4)] for owner, hours in (await pictures.hours_today(context)).items())
    headers = {"Content-Disposition": 'attachment; filename="usage.csv"'}
    return Response(text.getvalue(), media_type="text/csv; charset=utf-8", headers=headers)


@router.get("/pool/hosts/{name}/{action}")
def ask(
    request: Request,
    context: ContextDep,
    user: CurrentAdmin,
    name: HostName,
    action: Literal["drain", "undrain"],
    back: Back = "/pool",
) -> Response:
    """What draining a host, or ending that, would change, and the button for it."""
    foreseen = _act(context, user, name, action, dry_run=True)
    return templating.page(
        request, "act.html", view=drain_question(name, action, foreseen.get("changes"), back)
    )


@router.post("/pool/hosts/{name}/{action}")
def act(
    context: ContextDep,
    user: CurrentAdmin,
    name: HostName,
    action: Literal["drain", "undrain"],
    back: Annotated[Back, Form()] = "/pool",
) -> Response:
    """Drain a host, or end that."""
    _act(context, user, name, action)
    return RedirectResponse(back, 303)


def _act(
    context: Context, user: UserRecord, name: str, action: str, *, dry_run: bool = False
) -> dict[str, Any]:
    if action == "drain":
        return service.drain(context, user, name, dry_run=dry_run)
    return service.undrain(context, name, dry_run=dry_run)
