"""All jobs."""

import json
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from edt_launch.service.api import jobs as rest
from edt_launch.service.api.dependencies import ContextDep, CurrentUser
from edt_launch.service.names import MOST_NAME, PLAIN
from edt_launch.service.web import templating
from edt_launch.service.web.views.jobs import Filter, jobs_view

router = APIRouter()

PAGE = 100
"""Jobs of a page."""

Text = Annotated[str, Query(max_length=MOST_NAME, pattern=f"^{PLAIN}$")]


@router.get("/jobs")
def show(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    state: Text = "",
    owner: Text = "",
    text: Text = "",
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
) -> Response:
    """A page of those that are looked for."""
    wanted = Filter(state, owner.strip(), text.strip(), after)
    answer = rest.list_jobs(
        request,
        context,
        user,
        state=None if state in ("", "all") else state,
        owner=wanted.owner or None,
        limit=PAGE,
        after=after,
        everything=state == "all",
        text=wanted.text,
        newest=True,
    )
    page = json.loads(bytes(answer.body))
    return templating.page(request, "jobs.html", view=jobs_view(wanted, page["jobs"], page["next"]))
