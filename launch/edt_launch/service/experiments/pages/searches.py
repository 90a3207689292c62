"""What the page of an experiment shows of a search, and what can be done with one."""

from collections.abc import Callable

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from edt_launch.service.errors import ConflictError
from edt_launch.service.experiments.pages.views import searches as views
from edt_launch.service.experiments.searches import service
from edt_launch.service.http.dependencies import ContextDep, CurrentUser
from edt_launch.service.web.actions import Action, Asked, routes
from edt_launch.service.web.asking import Question
from edt_launch.service.web.form_fields import KeyField, new_key

router = APIRouter()


@router.get("/searches{path:path}")
def moved(request: Request, context: ContextDep, user: CurrentUser, path: str) -> Response:
    """Searches are among the experiments; their former addresses lead there."""
    _, _, rest = path.partition("/")
    name, slash, action = rest.partition("/")
    if name == "new":
        name = "new-search"
    elif name:
        name = service.search_of(context, name).id
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(f"/experiments{'/' if name else ''}{name}{slash}{action}{query}", 303)


def question(asked: Asked, name: str) -> Question:
    """The question about an action; `ConflictError` if it makes no sense at present."""
    record = service.own_search(asked.context, asked.user, asked.id)
    (search,) = service.listed(asked.context, asked.user, [record])
    if name not in views.actions(search):
        raise ConflictError(f"{search['name']} is {search['state']}", "look at its page for what can be done")
    return views.question(search, name, new_key())


def _action(name: str, do: Callable[[Asked], str]) -> Action:
    return Action(f"/experiments/{{id}}/{name}", lambda asked: question(asked, name), do, KeyField)


def _stop(asked: Asked) -> str:
    service.stop(asked.context, service.own_search(asked.context, asked.user, asked.id))
    return f"/experiments/{asked.id}"


def _restart(asked: Asked) -> str:
    search = service.own_search(asked.context, asked.user, asked.id)
    asked.carry_out(service.restart(asked.context, search))
    return f"/experiments/{asked.id}"


def _run_best(asked: Asked) -> str:
    context, key = asked.context, asked.given.key or None
    search = service.own_search(context, asked.user, asked.id)
    best = service.best_of(context, [search]).get(search.id)
    return f"/jobs/{service.run_best(context, asked.user, search, best, key).id}"


ACTIONS = {"stop": _stop, "restart": _restart, "run-best": _run_best}

router.include_router(routes(_action(name, do) for name, do in ACTIONS.items()))
