"""The pool: who has which device, and who had."""

import csv
import io
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import BaseModel

from edt_launch.cluster.allocation import HOST
from edt_launch.service.cluster import answers, pictures, service
from edt_launch.service.cluster.pages.views.pool import WINDOWS, PoolView, drain_question, pool_view
from edt_launch.service.errors import InvalidError, NotFoundError
from edt_launch.service.http.dependencies import ContextDep, CurrentUser
from edt_launch.service.jobs.forecast.forecast import upcoming
from edt_launch.service.web import templating
from edt_launch.service.web.actions import Action, Asked, routes
from edt_launch.service.web.asking import Question

router = APIRouter()


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
        return pool_view(cluster, jobs, had, following, today, window, now, host)

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


class WhereFrom(BaseModel):
    """The page from which a host is drained."""

    back: Literal["/pool", "/console/hosts"] = "/pool"


def _draining(verb: str) -> Action:
    is_draining = verb == "drain"

    def ask(asked: Asked) -> Question:
        done: dict[str, Any] = {}
        if asked.error is None:
            done = service.set_draining(asked.context, asked.user, asked.id, is_draining, dry_run=True)
        return drain_question(asked.id, verb, done.get("changes"), asked.given.back)

    def do(asked: Asked) -> str:
        service.set_draining(asked.context, asked.user, asked.id, is_draining)
        return str(asked.given.back)

    return Action(f"/pool/hosts/{{id}}/{verb}", ask, do, WhereFrom, is_for_admins=True)


router.include_router(routes(map(_draining, ("drain", "undrain"))))
