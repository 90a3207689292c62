"""Searches for hyperparameters: all of them, and one."""

from typing import Annotated, Literal

from fastapi import APIRouter, BackgroundTasks, Depends, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import StringConstraints

from edt_launch.service.errors import ConflictError, ForbiddenError
from edt_launch.service.experiments.pages.views import searches as views
from edt_launch.service.experiments.searches import service
from edt_launch.service.http.dependencies import ContextDep, CurrentUser, carry_out
from edt_launch.service.names import MAX_NAME, OWNER, PLAIN
from edt_launch.service.web import templating
from edt_launch.service.web.form_fields import FormKey, new_key

router = APIRouter(prefix="/searches")

PAGE = 100
"""Searches of a page, and trials."""

Action = Literal["stop", "restart", "run-best", "delete"]
Key = Annotated[str, StringConstraints(max_length=MAX_NAME + 2, pattern=f"^{PLAIN}$")]
Keys = Annotated[list[Key] | None, Query(max_length=2 * views.MAX_AXES)]


class PicturesQuery:
    """What an address asks of the pictures."""

    def __init__(
        self,
        axis: Keys = None,
        flip: Keys = None,
        log: Keys = None,
        x: Key = "",
        y: Key = "",
        sort: Key = "",
    ) -> None:
        self.drawn = views.Drawn(axis or (), flip or (), log or (), x, y, sort)


PicturesQueryDep = Annotated[PicturesQuery, Depends()]


@router.get("")
async def show_all(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    owner: Annotated[str, Query(pattern=f"^({OWNER})?$")] = "",
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
) -> Response:
    """A page of searches, the newest first."""

    def view() -> views.SearchesView:
        answer = service.page(context, user, owner or None, PAGE, after, newest=True)
        return views.searches_view(owner, answer["searches"], answer["next"], context.clock(), after)

    who = None if user.is_admin else user.name  # others see the best of their own alone
    return await templating.shared_page(request, who, "searches.html", view)


@router.get("/{search_id}")
def show(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    search_id: str,
    asked: PicturesQueryDep,
    tab: Literal["input", "best", "progress"] = "progress",
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
) -> Response:
    """A search, and one of its tabs."""
    search = service.shown(context, user, search_id)
    view = views.search_view(
        search,
        tab,
        asked.drawn,
        context.clock(),
        after=after,
        most=PAGE,
        is_own=search["trials"] is not None,
    )
    return templating.page(request, "search.html", view=view)


@router.get("/{search_id}/{action}")
def ask(request: Request, context: ContextDep, user: CurrentUser, search_id: str, action: Action) -> Response:
    """What an action would do, and the button for it."""
    search = service.shown(context, user, search_id)
    if search["trials"] is None:
        raise ForbiddenError(
            f"{search['name']} is a search of {search['owner']}", "ask them, or an administrator"
        )
    if action not in views.actions(search):
        raise ConflictError(f"{search['name']} is {search['state']}", "look at its page for what can be done")
    return templating.page(request, "act.html", view=views.question(search, action, new_key()))


@router.post("/{search_id}/{action}")
def act(
    context: ContextDep,
    user: CurrentUser,
    search_id: str,
    action: Action,
    afterwards: BackgroundTasks,
    key: FormKey = "",
) -> Response:
    """Do it, and show what has come of it."""
    goal = f"/searches/{search_id}"
    match action:
        case "stop":
            service.stop(context, service.own_search(context, user, search_id))
        case "restart":
            search = service.own_search(context, user, search_id)
            carry_out(service.restart(context, search), afterwards)
        case "run-best":
            search = service.own_search(context, user, search_id)
            best = service.best_of(context, [search]).get(search.id)
            goal = f"/jobs/{service.run_best(context, user, search, best, key or None).id}"
        case "delete":
            goal = "/searches"
            carry_out(service.delete(context, service.own_search(context, user, search_id)), afterwards)
    return RedirectResponse(goal, 303, background=afterwards)
