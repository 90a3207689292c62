"""`/hypersearch`: start, list, show, stop, start again and delete searches; the algorithms that there are."""

from contextlib import suppress
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, BackgroundTasks, Query, Response
from pydantic_core import to_json

from edt_launch.adapters.wmla.hypersearch import views
from edt_launch.adapters.wmla.hypersearch.definition import Algorithm
from edt_launch.adapters.wmla.hypersearch.searches import KIND, as_hpo_task, create_search, restart
from edt_launch.adapters.wmla.submission.form import FormDep
from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.errors import ConflictError, InvalidError
from edt_launch.service.experiments.records import ExperimentRecord, SearchWanted
from edt_launch.service.experiments.searches import service as searches
from edt_launch.service.experiments.searches.service import Deletion
from edt_launch.service.http.dependencies import ContextDep, CurrentUser, carry_out

router = APIRouter(prefix="/hypersearch")


@router.post("")
async def start(context: ContextDep, user: CurrentUser, form: FormDep) -> Response:
    """Start a search; its name is returned."""
    create = partial(create_search, context, user, form.data, form.parts)
    return _json((await context.uploads.run(user.name, create)).name)


@router.get("")
def list_searches(context: ContextDep, user: CurrentUser) -> Response:
    """All searches that the user may see, oldest first."""
    searches = context.store.experiments.searches(None if user.is_admin else user.name, KIND)
    trials = context.store.experiments.trials_of([search.id for search in searches])
    now = context.clock()
    return _json([views.search(search, trials[search.id], now) for search in searches])


@router.delete("", status_code=204, response_class=Response)
def delete_all(context: ContextDep, user: CurrentUser, afterwards: BackgroundTasks) -> None:
    """Delete all of the user's searches that have ended."""
    for search in context.store.experiments.searches(user.name, KIND):
        with suppress(ConflictError):  # it has not ended
            carry_out(_delete(context, search), afterwards)


@router.get("/algorithm")
def list_algorithms(
    kind: Annotated[str | None, Query(alias="type", max_length=64)] = None,
) -> Response:
    """The algorithms, or those of a type."""
    return _json([views.algorithm(one) for one in Algorithm if kind in (None, "", views.BUILT_IN)])


@router.get("/algorithm/{name}")
def show_algorithm(name: str) -> Response:
    """An algorithm."""
    for algorithm in Algorithm:
        if algorithm.lower() == name.lower():
            return _json(views.algorithm(algorithm))
    raise InvalidError(f"Hpo algorithm {name[:80]!r} not found", f"there are {', '.join(Algorithm)}")


@router.get("/{name}")
def show(context: ContextDep, user: CurrentUser, name: str) -> Response:
    """A search."""
    search = _search(context, user, name)
    return _json(views.search(search, context.store.experiments.trials(search.id), context.clock()))


@router.put("/{name}", status_code=204, response_class=Response)
def stop(context: ContextDep, user: CurrentUser, name: str) -> None:
    """Stop a search and its trials."""
    _stop(context, _search(context, user, name), SearchWanted.STOP)


@router.put("/{name}/force", status_code=204, response_class=Response)
def stop_at_once(context: ContextDep, user: CurrentUser, name: str) -> None:
    """Stop a search without waiting until its trials have ended."""
    _stop(context, _search(context, user, name), SearchWanted.FORCE)


@router.put("/{name}/restart", status_code=204, response_class=Response)
def start_again(context: ContextDep, user: CurrentUser, name: str, afterwards: BackgroundTasks) -> None:
    """Have a search that was stopped, or has failed, go on."""
    carry_out(restart(context, _search(context, user, name)), afterwards)


@router.delete("/{name}", status_code=204, response_class=Response)
def delete(context: ContextDep, user: CurrentUser, name: str, afterwards: BackgroundTasks) -> None:
    """Delete a search that has ended, with its trials' jobs and files."""
    carry_out(_delete(context, _search(context, user, name)), afterwards)


def _search(context: Context, user: UserRecord, name: str) -> ExperimentRecord:
    """A search of the user's; others are as if they were not there."""
    search = context.store.experiments.search(name)
    if search is None or search.kind != KIND or not (user.is_admin or user.name == search.owner):
        raise InvalidError(f"Hpo task {name[:80]!r} not found")
    return search


def _stop(context: Context, search: ExperimentRecord, wanted: SearchWanted) -> None:
    if not searches.stop(context, search, wanted):
        state = views.SEARCH_STATES[search.state] if search.has_ended else "being stopped"
        raise InvalidError(f"Hpo task {search.name} is {state} already")


def _delete(context: Context, search: ExperimentRecord) -> list[Deletion]:
    if not search.has_ended:
        raise ConflictError(f"Hpo task {search.name} is {views.SEARCH_STATES[search.state]}", "stop it first")
    with as_hpo_task():
        return searches.delete(context, search)


def _json(content: Any) -> Response:
    return Response(to_json(content), media_type="application/json")
