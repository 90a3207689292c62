"""`/api/v1/experiments`: create, list, show, stop, delete. The controller of experiments runs them."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, BackgroundTasks, File, Form, Query, Response, UploadFile
from pydantic import Json

from edt_launch.service import experiments
from edt_launch.service.api import schemas, views
from edt_launch.service.api.dependencies import ContextDep, CurrentUser, carry_out
from edt_launch.service.context import Context, may
from edt_launch.service.database.records import ExperimentRecord, TrialRecord, UserRecord
from edt_launch.service.errors import ForbiddenError, NotFoundError
from edt_launch.service.experiment_spec import ExperimentSpec, Objective
from edt_launch.service.names import OWNER

router = APIRouter(tags=["experiments"])

MOST = 100
"""Experiments of one page."""


@router.post("/experiments", status_code=201, response_model=schemas.ExperimentWithTrials)
async def create(
    context: ContextDep,
    user: CurrentUser,
    spec: Annotated[Json[ExperimentSpec], Form(description="The experiment, as JSON.")],
    code: Annotated[UploadFile | None, File(description="Its trials' code: tar, tar.gz or zip.")] = None,
) -> Any:
    """Create an experiment; its trials are jobs."""
    file = None if code is None else code.file
    submit = partial(experiments.submit, context, user, spec, file)
    return views.experiment_with_trials(await context.uploads.run(user.name, submit), [], None, user)


@router.get("/experiments", response_model=schemas.Experiments)
def list_experiments(
    context: ContextDep,
    user: CurrentUser,
    owner: Annotated[str | None, Query(pattern=f"^{OWNER}$", description="Only this user's.")] = None,
    limit: Annotated[int, Query(ge=1, le=MOST, description="Experiments of a page.")] = MOST,
    after: Annotated[int, Query(ge=0, le=2**53, description="`next` of the page before.")] = 0,
) -> Any:
    """All experiments, in the order of their creation."""
    found = context.store.experiments.page(owner, after, limit + 1)
    page = found[:limit]
    counts = context.store.experiments.counts([one.id for one in page])
    best = _best(context, [one for one in page if may(user, one)])
    return {
        "experiments": [views.experiment(one, counts[one.id], best.get(one.id), user) for one in page],
        "next": page[-1].number if len(found) > limit else None,
    }


@router.get("/experiments/{experiment_id}", response_model=schemas.ExperimentWithTrials)
def show(context: ContextDep, user: CurrentUser, experiment_id: str) -> Any:
    """An experiment, by its id or name, and its trials."""
    experiment = _experiment(context, experiment_id)
    best = _best(context, [experiment]).get(experiment.id)
    trials = context.store.experiments.trials(experiment.id)
    return views.experiment_with_trials(experiment, trials, best, user)


@router.post("/experiments/{experiment_id}/stop", response_model=schemas.ExperimentWithTrials)
def stop(context: ContextDep, user: CurrentUser, experiment_id: str) -> Any:
    """Stop an experiment and its trials; one that has ended stays as it is."""
    experiments.stop(context, _own(context, user, experiment_id))
    return show(context, user, experiment_id)


@router.delete("/experiments/{experiment_id}", status_code=204, response_class=Response)
def delete(context: ContextDep, user: CurrentUser, experiment_id: str, afterwards: BackgroundTasks) -> None:
    """Forget an experiment that has ended, and delete its trials' jobs and files."""
    carry_out(experiments.delete(context, _own(context, user, experiment_id)), afterwards)


def _best(context: Context, page: Sequence[ExperimentRecord]) -> dict[str, TrialRecord]:
    best: dict[str, TrialRecord] = {}
    for objective in Objective:
        ids = [one.id for one in page if one.definition["objective"] == objective]
        best |= context.store.experiments.best(ids, largest=objective is Objective.MAXIMIZE)
    return best


def _experiment(context: Context, name: str) -> ExperimentRecord:
    experiment = context.store.experiments.get(name)
    if experiment is None:
        raise NotFoundError(
            f"there is no experiment {name[:80]!r}",
            "GET /api/v1/experiments lists them: `edt experiment ls`",
        )
    return experiment


def _own(context: Context, user: UserRecord, name: str) -> ExperimentRecord:
    """An experiment that a user may do everything with."""
    experiment = _experiment(context, name)
    if not may(user, experiment):
        raise ForbiddenError(
            f"{experiment.name} is an experiment of {experiment.owner}", "ask them, or an administrator"
        )
    return experiment
