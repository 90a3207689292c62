"""`/api/v1/searches`: create, list, show, stop, delete. The controller of searches runs them."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, BackgroundTasks, File, Form, Query, Response, UploadFile
from pydantic import Json

from edt_launch.service.db.paging import PageQuery
from edt_launch.service.experiments.searches import answers, schemas
from edt_launch.service.experiments.searches import service as searches
from edt_launch.service.experiments.searches.trial_job import SubmittedSearch
from edt_launch.service.http.dependencies import ContextDep, CurrentUser, SubjectDep, carry_out, page_of
from edt_launch.service.jobs import schemas as job_schemas
from edt_launch.service.jobs.answers import job as job_answer
from edt_launch.service.jobs.rest.jobs import Key
from edt_launch.service.names import OWNER

router = APIRouter(tags=["searches"])


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
    return answers.search_with_trials(search, [], None, user)


@router.get("/searches", response_model=schemas.Searches)
def list_searches(
    context: ContextDep,
    user: CurrentUser,
    page: Annotated[PageQuery, page_of("Searches")],
    owner: Annotated[str | None, Query(pattern=f"^{OWNER}$", description="Only this user's.")] = None,
) -> Any:
    """All searches, in the order of their creation."""
    return searches.page(context, user, owner, page)


@router.get("/searches/{search_id}", response_model=schemas.SearchWithTrials)
def show(context: ContextDep, user: CurrentUser, search_id: str) -> Any:
    """A search, by its id or name, and its trials."""
    return searches.shown(context, user, search_id)


@router.post("/searches/{search_id}/stop", response_model=schemas.SearchWithTrials)
def stop(context: ContextDep, user: CurrentUser, search_id: str) -> Any:
    """Stop a search and its trials; one that has ended stays as it is."""
    searches.stop(context, searches.own_search(context, user, search_id))
    return searches.shown(context, user, search_id)


@router.post("/searches/{search_id}/restart", response_model=schemas.SearchWithTrials)
def restart(context: ContextDep, user: CurrentUser, search_id: str, afterwards: BackgroundTasks) -> Any:
    """Have a search go on that was stopped, has failed or waits; trials that have finished stay."""
    carry_out(searches.restart(context, searches.own_search(context, user, search_id)), afterwards)
    return searches.shown(context, user, search_id)


@router.post("/searches/{search_id}/run-best", status_code=201, response_model=job_schemas.Job)
def run_best(context: ContextDep, user: CurrentUser, search_id: str, idempotency_key: Key = None) -> Any:
    """Run the best trial's job again, with its files, command and settings."""
    search = searches.own_search(context, user, search_id)
    job = searches.run_best(
        context, user, search, searches.best_of(context, [search]).get(search.id), idempotency_key
    )
    return job_answer(job)


@router.delete("/searches/{search_id}", status_code=204, response_class=Response)
def delete(context: ContextDep, user: CurrentUser, search_id: str, afterwards: BackgroundTasks) -> None:
    """Forget a search that has ended, and delete its trials' jobs and files."""
    carry_out(searches.delete(context, searches.own_search(context, user, search_id)), afterwards)
