"""`/api/v1/experiments`: what is run with what."""

from typing import Annotated, Any

from fastapi import APIRouter, BackgroundTasks, Response

from edt_launch.service.app.context import Context
from edt_launch.service.db.paging import PageQuery
from edt_launch.service.experiments import experiments, service
from edt_launch.service.experiments.records import ExperimentRecord
from edt_launch.service.experiments.rest import schemas
from edt_launch.service.experiments.rest.definitions import OwnName, ProjectName
from edt_launch.service.experiments.spec import ExperimentChange, ExperimentSpec
from edt_launch.service.http.dependencies import ContextDep, CurrentUser, SubjectDep, carry_out, page_of
from edt_launch.service.http.versions import Seen, tag

router = APIRouter(tags=["experiments"])


@router.post("/experiments", status_code=201, response_model=schemas.ExperimentWithTrainings)
def create(
    context: ContextDep, user: CurrentUser, subject: SubjectDep, response: Response, spec: ExperimentSpec
) -> Any:
    """Make an experiment."""
    experiment = experiments.create(context, user, spec)
    subject(f"{experiment.id} {experiment.name}")
    return _shown(context, experiment, response)


@router.get("/experiments", response_model=schemas.Experiments)
def list_experiments(
    context: ContextDep,
    user: CurrentUser,
    page: Annotated[PageQuery, page_of("Experiments")],
    project: ProjectName = None,
    name: OwnName = None,
) -> Any:
    """The experiments of projects that the user is a member of."""
    return service.experiments_page(context, user, project, name, page)


@router.get("/experiments/{experiment_id}", response_model=schemas.ExperimentWithTrainings)
def show(context: ContextDep, user: CurrentUser, response: Response, experiment_id: str) -> Any:
    """An experiment and its training definitions."""
    return _shown(context, experiments.experiment_for(context, user, experiment_id), response)


@router.patch("/experiments/{experiment_id}", response_model=schemas.ExperimentWithTrainings)
def change(
    context: ContextDep,
    user: CurrentUser,
    response: Response,
    experiment_id: str,
    changes: ExperimentChange,
    seen: Seen,
) -> Any:
    """Change an experiment; `trainings` takes the place of all that it has."""
    return _shown(context, experiments.change(context, user, experiment_id, changes, seen), response)


@router.delete("/experiments/{experiment_id}", status_code=204, response_class=Response)
def delete(context: ContextDep, user: CurrentUser, experiment_id: str, afterwards: BackgroundTasks) -> None:
    """Forget an experiment whose runs have ended, and these; their jobs stay, but for those of a search."""
    carry_out(experiments.delete(context, user, experiment_id), afterwards)


def _shown(context: Context, experiment: ExperimentRecord, response: Response) -> Any:
    tag(response, experiment.version)
    return service.experiment(context, experiment)
