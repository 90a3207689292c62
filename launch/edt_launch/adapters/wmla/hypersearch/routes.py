"""`/hypersearch`: start, list, show, stop, start again and delete searches; the algorithms that there are."""

from typing import Annotated, Any

from fastapi import APIRouter, BackgroundTasks, File, Form, Query, Response, UploadFile
from pydantic_core import to_json

from edt_launch.adapters.wmla.hypersearch import removing, views
from edt_launch.adapters.wmla.hypersearch.algorithm import Algorithm
from edt_launch.adapters.wmla.hypersearch.create_search import take_in
from edt_launch.service.api.afterwards import carry_out
from edt_launch.service.api.context import Context, Here, User
from edt_launch.service.bus import Topic
from edt_launch.service.database.records import UserRecord
from edt_launch.service.database.search_records import SEARCH_ENDS, SearchRecord, SearchState, Wish
from edt_launch.service.database.searches import NoSuchSearchError
from edt_launch.service.errors import ConflictError, InvalidError

router = APIRouter(prefix="/hypersearch", tags=["hypersearch"])

LIVE = frozenset(SearchState) - SEARCH_ENDS


@router.post("")
def start(
    here: Here,
    user: User,
    data: Annotated[str, Form(description="What to search how, as JSON.")],
    file: Annotated[UploadFile, File(description="What trials run: tar, or a single script.")],
) -> Response:
    """Start a search; its name is returned."""
    return _json(take_in(here, user, data, file.file, file.filename or "").name)


@router.get("")
def list_searches(here: Here, user: User) -> Response:
    """All searches that the user may see, oldest first."""
    found = here.store.searches.all(None if user.is_admin else user.name)
    trials = here.store.searches.trials_of([search.id for search in found])
    now = here.clock()
    return _json([views.search(search, trials[search.id], now) for search in found])


@router.delete("", status_code=204, response_class=Response)
def delete_all(here: Here, user: User, afterwards: BackgroundTasks) -> None:
    """Delete all of the user's searches that have ended."""
    for search in here.store.searches.all(user.name):
        try:
            deletions = removing.delete(here, search)
        except ConflictError:
            continue  # it has not ended
        carry_out(deletions, afterwards)


@router.get("/algorithm")
def list_algorithms(
    kind: Annotated[str | None, Query(alias="type", max_length=64, description="Only of this type.")] = None,
) -> Response:
    """The algorithms."""
    found = [] if kind not in (None, "", views.BUILT_IN) else list(Algorithm)
    return _json(list(map(views.algorithm, found)))


@router.get("/algorithm/{name}")
def show_algorithm(name: str) -> Response:
    """An algorithm."""
    for algorithm in Algorithm:
        if algorithm.lower() == name.lower():
            return _json(views.algorithm(algorithm))
    raise InvalidError(f"Hpo algorithm {name[:80]!r} not found", f"there are {', '.join(Algorithm)}")


@router.get("/{name}")
def show(here: Here, user: User, name: str) -> Response:
    """A search."""
    search = _search(here, user, name)
    return _json(views.search(search, here.store.searches.trials(search.id), here.clock()))


@router.put("/{name}", status_code=204, response_class=Response)
def stop(here: Here, user: User, name: str) -> None:
    """Stop a search and its trials."""
    _wish(here, _search(here, user, name), Wish.STOP)


@router.put("/{name}/force", status_code=204, response_class=Response)
def stop_at_once(here: Here, user: User, name: str) -> None:
    """Stop a search without waiting until its trials have ended."""
    _wish(here, _search(here, user, name), Wish.FORCE)


@router.put("/{name}/restart", status_code=204, response_class=Response)
def restart(here: Here, user: User, name: str, afterwards: BackgroundTasks) -> None:
    """Have a search that was stopped, or has failed, go on."""
    carry_out(removing.restart(here, _search(here, user, name)), afterwards)


@router.delete("/{name}", status_code=204, response_class=Response)
def delete(here: Here, user: User, name: str, afterwards: BackgroundTasks) -> None:
    """Delete a search that has ended, with its trials' jobs and files."""
    carry_out(removing.delete(here, _search(here, user, name)), afterwards)


def _search(here: Context, user: UserRecord, name: str) -> SearchRecord:
    """A search of the user's; others are as if they were not there."""
    try:
        search = here.store.searches.get(name)
    except NoSuchSearchError:
        search = None
    if search is None or not (user.is_admin or user.name == search.owner):
        raise InvalidError(f"Hpo task {name[:80]!r} not found")
    return search


def _wish(here: Context, search: SearchRecord, wanted: Wish) -> None:
    is_new = search.wanted is Wish.RUN or (search.wanted is Wish.STOP and wanted is Wish.FORCE)
    if not is_new or not here.store.searches.wish(search.id, wanted, LIVE):
        said = (
            "is being stopped already"
            if search.state in LIVE and not is_new
            else f"is {search.state} already"
        )
        raise InvalidError(f"Hpo task {search.name} {said}")
    here.bus.notify(Topic.SEARCHES)


def _json(content: Any) -> Response:
    return Response(to_json(content), media_type="application/json")
