"""`/api/v1/experiments`: create, list, show, stop, delete. The controller of experiments runs them."""

from typing import Annotated, Any

from fastapi import APIRouter, BackgroundTasks, File, Form, Query, Response, UploadFile
from pydantic import Json

from edt_launch.service import experiments
from edt_launch.service.api import schemas, views
from edt_launch.service.api.afterwards import carry_out
from edt_launch.service.api.context import Context, Here, User, may
from edt_launch.service.database.records import UserRecord
from edt_launch.service.database.search_records import SearchRecord
from edt_launch.service.errors import ForbiddenError, NotFoundError
from edt_launch.service.experiment_spec import ExperimentSpec
from edt_launch.service.names import USER

router = APIRouter(tags=["experiments"])

MOST = 100
"""Experiments of one page."""


@router.post("/experiments", status_code=201, response_model=schemas.ExperimentWithTrials)
def create(
    here: Here,
    user: User,
    spec: Annotated[Json[ExperimentSpec], Form(description="The experiment, as JSON.")],
    code: Annotated[UploadFile | None, File(description="Its trials' code: tar, tar.gz or zip.")] = None,
) -> Any:
    """Create an experiment; its trials are jobs."""
    search = experiments.submit(here, user, spec, None if code is None else code.file)
    return views.experiment_with_trials(search, [], user)


@router.get("/experiments", response_model=schemas.Experiments)
def list_experiments(
    here: Here,
    user: User,
    owner: Annotated[str | None, Query(pattern=f"^{USER}$", description="Only this user's.")] = None,
    limit: Annotated[int, Query(ge=1, le=MOST, description="Experiments of a page.")] = MOST,
    after: Annotated[int, Query(ge=0, le=2**53, description="`next` of the page before.")] = 0,
) -> Any:
    """All experiments, in the order of their creation."""
    found = here.store.searches.all(owner, after=after, limit=limit + 1)
    page = found[:limit]
    trials = here.store.searches.trials_of([search.id for search in page])
    return {
        "experiments": [views.experiment(search, trials[search.id], user) for search in page],
        "next": page[-1].number if len(found) > limit else None,
    }


@router.get("/experiments/{experiment_id}", response_model=schemas.ExperimentWithTrials)
def show(here: Here, user: User, experiment_id: str) -> Any:
    """An experiment, by its id or name, and its trials."""
    search = _experiment(here, experiment_id)
    return views.experiment_with_trials(search, here.store.searches.trials(search.id), user)


@router.post("/experiments/{experiment_id}/stop", response_model=schemas.ExperimentWithTrials)
def stop(here: Here, user: User, experiment_id: str) -> Any:
    """Stop an experiment and its trials; one that has ended stays as it is."""
    experiments.stop(here, _own(here, user, experiment_id))
    return show(here, user, experiment_id)


@router.delete("/experiments/{experiment_id}", status_code=204, response_class=Response)
def delete(here: Here, user: User, experiment_id: str, afterwards: BackgroundTasks) -> None:
    """Forget an experiment that has ended, and delete its trials' jobs and files."""
    carry_out(experiments.delete(here, _own(here, user, experiment_id)), afterwards)


def _experiment(here: Context, name: str) -> SearchRecord:
    search = here.store.searches.get(name)
    if search is None:
        raise NotFoundError(
            f"there is no experiment {name[:80]!r}",
            "GET /api/v1/experiments lists them: `edt experiment ls`",
        )
    return search


def _own(here: Context, user: UserRecord, name: str) -> SearchRecord:
    """An experiment that a user may do everything with."""
    search = _experiment(here, name)
    if not may(user, search):
        raise ForbiddenError(
            f"{search.name} is an experiment of {search.owner}", "ask them, or an administrator"
        )
    return search
