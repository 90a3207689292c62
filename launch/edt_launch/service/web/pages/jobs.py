"""All jobs."""

import json
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from edt_launch.cluster.allocation import HOST
from edt_launch.service.api import jobs as rest
from edt_launch.service.api.dependencies import ContextDep, CurrentUser
from edt_launch.service.context import Context
from edt_launch.service.database.jobs import SORTS
from edt_launch.service.database.records import UserRecord
from edt_launch.service.errors import InvalidError
from edt_launch.service.home import SEARCH_ID
from edt_launch.service.names import MOST_NAME, PLAIN
from edt_launch.service.web import templating
from edt_launch.service.web.views.jobs import TIMES, Filter, JobsView, jobs_view

router = APIRouter()

PAGE = 100
"""Jobs of a page."""

Text = Annotated[str, Query(max_length=MOST_NAME, pattern=f"^{PLAIN}$")]


@router.get("/jobs")
async def show(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    state: Text = "",
    owner: Text = "",
    text: Text = "",
    host: Annotated[str, Query(max_length=255, pattern=f"^({HOST})?$")] = "",
    search: Annotated[str, Query(pattern=f"^({SEARCH_ID})?$")] = "",
    last: Text = "",
    sort: Annotated[str, Query(pattern=f"^(-?({'|'.join(SORTS)}))?$")] = "",
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
) -> Response:
    """A page of those that are looked for."""
    if last and last not in TIMES:
        raise InvalidError(f"last: {last!r} is none", f"choose one of {', '.join(TIMES)}")
    wanted = Filter(state, owner.strip(), text.strip(), host, search, last, sort, after)
    who = None if user.is_admin else user.name  # others choose their own jobs alone
    return await templating.shared_page(
        request, who, "jobs.html", lambda: _view(request, context, user, wanted)
    )


def _view(request: Request, context: Context, user: UserRecord, wanted: Filter) -> JobsView:
    answer = rest.list_jobs(
        request,
        context,
        user,
        state=None if wanted.state in ("", "all") else wanted.state,
        owner=wanted.owner or None,
        limit=PAGE,
        after=wanted.after,
        everything=wanted.state == "all",
        text=wanted.text,
        newest=wanted.is_descending,
        host=wanted.host or None,
        search=wanted.search or None,
        submitted_since=context.clock() - TIMES[wanted.last] if wanted.last else None,
        sort=wanted.sort.removeprefix("-") or "number",
    )
    page = json.loads(bytes(answer.body))
    return jobs_view(wanted, page["jobs"], page["next"])
