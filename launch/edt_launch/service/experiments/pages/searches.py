"""Searches for hyperparameters: all of them, and one."""

from collections.abc import Callable
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import StringConstraints

from edt_launch.service.db.paging import PageQuery
from edt_launch.service.errors import ConflictError
from edt_launch.service.experiments.pages.views import searches as views
from edt_launch.service.experiments.searches import service
from edt_launch.service.http.dependencies import ContextDep, CurrentUser
from edt_launch.service.names import MAX_NAME, OWNER, PLAIN
from edt_launch.service.web import templating
from edt_launch.service.web.actions import Action, Asked, routes
from edt_launch.service.web.asking import Question
from edt_launch.service.web.form_fields import KeyField, new_key

router = APIRouter(prefix="/searches")

PAGE = 100
"""Searches of a page, and trials."""

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
        answer = service.page(context, user, owner or None, PageQuery(PAGE, after, newest=True))
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


def _action(name: str, do: Callable[[Asked], str]) -> Action:
    def ask(asked: Asked) -> Question:
        service.own_search(asked.context, asked.user, asked.id)
        search = service.shown(asked.context, asked.user, asked.id)
        if name not in views.actions(search):
            said = f"{search['name']} is {search['state']}"
            raise ConflictError(said, "look at its page for what can be done")
        return views.question(search, name, new_key())

    return Action(f"/{{id}}/{name}", ask, do, KeyField)


def _stop(asked: Asked) -> str:
    service.stop(asked.context, service.own_search(asked.context, asked.user, asked.id))
    return f"/searches/{asked.id}"


def _restart(asked: Asked) -> str:
    search = service.own_search(asked.context, asked.user, asked.id)
    asked.carry_out(service.restart(asked.context, search))
    return f"/searches/{asked.id}"


def _run_best(asked: Asked) -> str:
    context, key = asked.context, asked.given.key or None
    search = service.own_search(context, asked.user, asked.id)
    best = service.best_of(context, [search]).get(search.id)
    return f"/jobs/{service.run_best(context, asked.user, search, best, key).id}"


def _delete(asked: Asked) -> str:
    asked.carry_out(service.delete(asked.context, service.own_search(asked.context, asked.user, asked.id)))
    return "/searches"


ACTIONS = {"stop": _stop, "restart": _restart, "run-best": _run_best, "delete": _delete}

router.include_router(routes(_action(name, do) for name, do in ACTIONS.items()))
