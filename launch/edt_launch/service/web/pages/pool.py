"""The pool: who has which device, and who had."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from edt_launch.service.api import timeline
from edt_launch.service.api import views as answers
from edt_launch.service.api.dependencies import ContextDep, CurrentUser
from edt_launch.service.errors import InvalidError
from edt_launch.service.web import templating
from edt_launch.service.web.views.pool import WINDOWS, pool_view

router = APIRouter()

PIXELS = 1200
"""Width of the picture that the table tells: what is shorter than one is merged."""


@router.get("/")
def first(user: CurrentUser) -> Response:
    """The first page."""
    return RedirectResponse("/pool", 303)


@router.get("/pool")
def show(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    window: Annotated[str, Query(max_length=16)] = "1 h",
) -> Response:
    """The pool now, and in a window of time that ends now."""
    if window not in WINDOWS:
        raise InvalidError(f"window: {window!r} is none", f"choose one of {', '.join(WINDOWS)}")
    now = context.clock()
    jobs = context.store.jobs.holders()
    had = timeline.draw(context, jobs, max(0.0, now - WINDOWS[window]), now, PIXELS)
    view = pool_view(answers.cluster(context.store.hosts.all(), jobs), jobs, had, window, now)
    return templating.page(request, "pool.html", view=view)
