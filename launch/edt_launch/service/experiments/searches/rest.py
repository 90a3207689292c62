"""`/api/v1/searches`: create, list, show, stop, delete. The controller of searches runs them."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, BackgroundTasks, File, Form, Query, Response, UploadFile
from pydantic import Json

from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context, may
from edt_launch.service.errors import ForbiddenError, NotFoundError
from edt_launch.service.experiments.searches import service as searches
from edt_launch.service.experiments.searches.records import SearchRecord, TrialRecord
from edt_launch.service.experiments.searches.spec import Objective, SubmittedSearch
from edt_launch.service.http.dependencies import ContextDep, CurrentUser, SubjectDep, carry_out
from edt_launch.service.jobs.rest import schemas, views
from edt_launch.service.jobs.rest.jobs import Key
from edt_launch.service.names import OWNER

router = APIRouter(tags=["searches"])

MOST = 100
"""Searches of one page."""


@router.post("/searches", status_code=201, response_model=schemas.SearchWithTrials)
async def create(
    context: ContextDep,
    user: CurrentUser,
    subject: SubjectDep,
    spec: Annotated[Json[SubmittedSearch], Form(description="The search, as JSON.")],
    code: Annotated[UploadFile | None, File(description="Its trials' code: tar, tar.gz or zip.")] = None,
) -> Any:
    """Create a search; its trials are jobs."""
    file = None if code is None else code.file
    submit = partial(searches.submit, context, user, spec, file)
    search = await context.uploads.run(user.name, submit)
    subject(search.id)
    return views.search_with_trials(search, [], None, user)


@router.get("/searches", response_model=schemas.Searches)
def list_searches(
    context: ContextDep,
    user: CurrentUser,
    owner: Annotated[str | None, Query(pattern=f"^{OWNER}$", description="Only this user's.")] = None,
    limit: Annotated[int, Query(ge=1, le=MOST, description="Searches of a page.")] = MOST,
    after: Annotated[int, Query(ge=0, le=2**53, description="`next` of the page before.")] = 0,
    newest: Annotated[bool, Query(description="The newest first.")] = False,
) -> Any:
    """All searches, in the order of their creation."""
    found = context.store.searches.page(owner, after, limit + 1, newest=newest)
    page = found[:limit]
    counts = context.store.searches.counts([one.id for one in page])
    best = _best(context, [one for one in page if may(user, one)])
    return {
        "searches": [views.search(one, counts[one.id], best.get(one.id), user) for one in page],
        "next": page[-1].number if len(found) > limit else None,
    }


@router.get("/searches/{search_id}", response_model=schemas.SearchWithTrials)
def show(context: ContextDep, user: CurrentUser, search_id: str) -> Any:
    """A search, by its id or name, and its trials."""
    search = _search(context, search_id)
    best = _best(context, [search]).get(search.id)
    trials = context.store.searches.trials(search.id)
    return views.search_with_trials(search, trials, best, user)


@router.post("/searches/{search_id}/stop", response_model=schemas.SearchWithTrials)
def stop(context: ContextDep, user: CurrentUser, search_id: str) -> Any:
    """Stop a search and its trials; one that has ended stays as it is."""
    searches.stop(context, _own(context, user, search_id))
    return show(context, user, search_id)


@router.post("/searches/{search_id}/restart", response_model=schemas.SearchWithTrials)
def restart(context: ContextDep, user: CurrentUser, search_id: str, afterwards: BackgroundTasks) -> Any:
    """Have a search go on that was stopped, has failed or waits; trials that have finished stay."""
    carry_out(searches.restart(context, _own(context, user, search_id)), afterwards)
    return show(context, user, search_id)


@router.post("/searches/{search_id}/run-best", status_code=201, response_model=schemas.Job)
def run_best(context: ContextDep, user: CurrentUser, search_id: str, idempotency_key: Key = None) -> Any:
    """Run the best trial's job again, with its files, command and settings."""
    search = _own(context, user, search_id)
    job = searches.run_best(context, user, search, _best(context, [search]).get(search.id), idempotency_key)
    return views.job(job)


@router.delete("/searches/{search_id}", status_code=204, response_class=Response)
def delete(context: ContextDep, user: CurrentUser, search_id: str, afterwards: BackgroundTasks) -> None:
    """Forget a search that has ended, and delete its trials' jobs and files."""
    carry_out(searches.delete(context, _own(context, user, search_id)), afterwards)


def _best(context: Context, page: Sequence[SearchRecord]) -> dict[str, TrialRecord]:
    best: dict[str, TrialRecord] = {}
    for objective in Objective:
        ids = [one.id for one in page if one.definition["objective"] == objective]
        best |= context.store.searches.best(ids, largest=objective is Objective.MAXIMIZE)
    return best


def _search(context: Context, name: str) -> SearchRecord:
    search = context.store.searches.get(name)
    if search is None:
        raise NotFoundError(
            f"there is no search {name[:80]!r}",
            "GET /api/v1/searches lists them: `edt search ls`",
        )
    return search


def _own(context: Context, user: UserRecord, name: str) -> SearchRecord:
    """A search that a user may do everything with."""
    search = _search(context, name)
    if not may(user, search):
        raise ForbiddenError(f"{search.name} is a search of {search.owner}", "ask them, or an administrator")
    return search
