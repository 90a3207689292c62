"""From what is typed at the top of a page to a job, or to those that may be meant."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.responses import RedirectResponse

from edt_launch.service.http.dependencies import ContextDep, CurrentUser
from edt_launch.service.jobs.pages.views.jobs import Filter
from edt_launch.service.jobs.query import JobQuery
from edt_launch.service.names import MAX_NAME, PLAIN

router = APIRouter()

SEVERAL = 2
"""Jobs after which it is plain that there is more than one."""


@router.get("/search")
def search(
    context: ContextDep,
    user: CurrentUser,
    text: Annotated[str, Query(max_length=MAX_NAME, pattern=f"^{PLAIN}$")] = "",
) -> Response:
    """The only job whose name or comment has the text, or whose id begins with it; else a list of them."""
    wanted = text.strip()
    found = context.store.jobs.page(JobQuery(text=wanted, limit=SEVERAL)).jobs if wanted else ()
    if len(found) == 1:
        return RedirectResponse(f"/jobs/{found[0].id}", 303)
    return RedirectResponse(Filter(state="all", text=wanted).address(), 303)
