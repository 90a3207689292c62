"""Runs of experiments: starting, listing and comparing them."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic_core import to_json

from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.app.home import JOB_ID
from edt_launch.service.experiments import experiments, runs
from edt_launch.service.experiments.experiments import Planned
from edt_launch.service.experiments.rest import schemas
from edt_launch.service.experiments.service import compared, curves, page_of, preview, view
from edt_launch.service.experiments.spec import RUN_ID, RunSpec
from edt_launch.service.files.series import LOSS
from edt_launch.service.files.series import MAX_POINTS as POINTS
from edt_launch.service.files.service import MAX_VALUES, ValueName
from edt_launch.service.http.dependencies import MAX_PAGE_SIZE, PREVIEWED, ContextDep, CurrentUser
from edt_launch.service.jobs.rest.jobs import DryRun, Key

router = APIRouter(tags=["experiments"])

MAX_CURVES = 20

STARTING: dict[int | str, dict[str, Any]] = {
    200: {"description": "What starting would change (`dry_run`)", "model": schemas.Preview}
}


@router.post(
    "/experiments/{experiment_id}/runs",
    status_code=201,
    response_model=schemas.Started,
    responses=STARTING,
    dependencies=[PREVIEWED],
)
async def start(
    context: ContextDep,
    user: CurrentUser,
    experiment_id: str,
    wanted: RunSpec,
    idempotency_key: Key = None,
    dry_run: DryRun = False,
) -> Response:
    """Start an experiment: a job for each of its training definitions, or for some."""
    plan = partial(experiments.planned_runs, context, user, experiment_id, wanted)
    return await _start(context, user, plan, idempotency_key, dry_run)


@router.post(
    "/runs/{run_id}/again",
    status_code=201,
    response_model=schemas.Started,
    responses=STARTING,
    dependencies=[PREVIEWED],
)
async def again(
    context: ContextDep,
    user: CurrentUser,
    run_id: str,
    idempotency_key: Key = None,
    dry_run: DryRun = False,
) -> Response:
    """Start a run anew, with the same code, command, variables and size."""
    plan = partial(experiments.planned_again, context, user, run_id)
    return await _start(context, user, plan, idempotency_key, dry_run)


@router.get("/experiments/{experiment_id}/runs", response_model=schemas.Runs)
async def list_runs(
    context: ContextDep,
    user: CurrentUser,
    experiment_id: str,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE, description="Runs of a page.")] = MAX_PAGE_SIZE,
    before: Annotated[int | None, Query(ge=1, le=2**53, description="`next` of the page before.")] = None,
) -> Response:
    """An experiment's runs, the newest first."""

    def find() -> Any:
        experiments.experiment_for(context, user, experiment_id)
        page, following = page_of(context, experiment_id, before, limit)
        return {"runs": [view(one) for one in runs.shown(context, page)], "next": following}

    return _json(await context.reads.run(user.name, find))


@router.get("/experiments/{experiment_id}/comparison", response_model=schemas.Comparison)
async def compare(
    context: ContextDep,
    user: CurrentUser,
    experiment_id: str,
    run: Annotated[
        list[Annotated[str, Query(pattern=f"^{RUN_ID}$")]] | None,
        Query(max_length=MAX_PAGE_SIZE, description="Only these; by default the newest 100."),
    ] = None,
) -> Response:
    """Runs beside each other: only the parameters that differ, with quality, device-hours and size."""
    return _json(await context.reads.run(user.name, partial(compared, context, user, experiment_id, run)))


@router.get("/runs/{run_id}", response_model=schemas.Run)
async def show(context: ContextDep, user: CurrentUser, run_id: str) -> Response:
    """A run."""

    def find() -> Any:
        (shown,) = runs.shown(context, [experiments.run_for(context, user, run_id)])
        return view(shown)

    return _json(await context.reads.run(user.name, find))


@router.delete("/runs/{run_id}", status_code=204, response_class=Response)
def delete(context: ContextDep, user: CurrentUser, run_id: str) -> None:
    """Forget a run that has ended; its job stays."""
    experiments.delete_run(context, user, run_id)


@router.get("/series", response_model=schemas.Curves)
async def series(
    context: ContextDep,
    user: CurrentUser,
    jobs: Annotated[
        str,
        Query(
            pattern=f"^{JOB_ID}(,{JOB_ID}){{0,{MAX_CURVES - 1}}}$",
            description="Ids of at most 20 jobs, with commas between.",
        ),
    ],
    name: Annotated[
        list[ValueName] | None, Query(max_length=MAX_VALUES, description="Values; by default `loss`.")
    ] = None,
    points: Annotated[int, Query(ge=100, le=POINTS, description="Of each job, at most.")] = 500,
) -> Response:
    """Values of several jobs over time: of the user's own, and of runs in projects of theirs."""
    ids, names = list(dict.fromkeys(jobs.split(","))), list(dict.fromkeys(name or [LOSS]))
    return _json(await context.reads.run(user.name, partial(curves, context, user, ids, names, points)))


async def _start(
    context: Context, user: UserRecord, plan: Callable[[], Sequence[Planned]], key: str | None, dry_run: bool
) -> Response:
    def start() -> Response:
        if dry_run:
            return _json(preview(context, user, plan()))
        started = experiments.start(context, user, plan(), key)
        return _json({"runs": [view(one) for one in runs.shown(context, started)]}, 201)

    return await context.uploads.run(user.name, start)


def _json(content: object, status: int = 200) -> Response:
    return Response(to_json(content), status_code=status, media_type="application/json")
