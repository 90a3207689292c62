"""Deleting training definitions, experiments and projects, after a question that says what that does."""

from collections.abc import Callable

from fastapi import APIRouter, BackgroundTasks, Request, Response
from fastapi.responses import RedirectResponse

from edt_launch.service.app.context import Context
from edt_launch.service.experiments import definitions, experiments, projects
from edt_launch.service.experiments.pages.views.deletions import (
    MAX_NAMES,
    definition_question,
    experiment_question,
    project_question,
)
from edt_launch.service.experiments.records import DefinitionRecord, ExperimentRecord, ProjectRecord, Role
from edt_launch.service.http.dependencies import SUBJECT, ContextDep, CurrentUser, carry_out
from edt_launch.service.web import templating
from edt_launch.service.web.asking import Question
from edt_launch.service.web.form_fields import WRONG

router = APIRouter(prefix="/experiments")


@router.get("/definitions/{definition_id}/delete")
def ask_definition(request: Request, context: ContextDep, user: CurrentUser, definition_id: str) -> Response:
    """Who uses a training definition."""
    definition = definitions.definition_for(context, user, definition_id, Role.EDITOR)
    return templating.page(request, "act.html", view=_definition(context, definition))


@router.post("/definitions/{definition_id}/delete")
def delete_definition(
    request: Request, context: ContextDep, user: CurrentUser, definition_id: str, afterwards: BackgroundTasks
) -> Response:
    """Delete it, unless experiments use it."""
    definition = definitions.definition_for(context, user, definition_id)

    def delete() -> None:
        carry_out([definitions.delete(context, user, definition.id)], afterwards)

    view = _definition(context, definition)
    return _deleted(request, delete, view, f"/experiments/projects/{definition.project}")


@router.get("/{experiment_id}/delete")
def ask_experiment(request: Request, context: ContextDep, user: CurrentUser, experiment_id: str) -> Response:
    """What becomes of an experiment's runs."""
    experiment = experiments.experiment_for(context, user, experiment_id, Role.EDITOR)
    return templating.page(request, "act.html", view=_experiment(context, experiment))


@router.post("/{experiment_id}/delete")
def delete_experiment(
    request: Request, context: ContextDep, user: CurrentUser, experiment_id: str
) -> Response:
    """Delete it, unless a run of it has not ended."""
    experiment = experiments.experiment_for(context, user, experiment_id)

    def delete() -> None:
        experiments.delete(context, user, experiment.id)

    view = _experiment(context, experiment)
    return _deleted(request, delete, view, f"/experiments/projects/{experiment.project}")


@router.get("/projects/{project_id}/delete")
def ask_project(request: Request, context: ContextDep, user: CurrentUser, project_id: str) -> Response:
    """Whether to delete a project."""
    project = projects.project_for(context, user, project_id, Role.MANAGER)
    return templating.page(request, "act.html", view=_project(context, project))


@router.post("/projects/{project_id}/delete")
def delete_project(request: Request, context: ContextDep, user: CurrentUser, project_id: str) -> Response:
    """Delete it, unless something is in it."""
    project = projects.project_for(context, user, project_id)

    def delete() -> None:
        projects.delete(context, user, project.id)

    return _deleted(request, delete, _project(context, project), "/experiments")


def _deleted(request: Request, delete: Callable[[], None], view: Question, place: str) -> Response:
    """Delete it and show what it was in, or the question again with what was wrong."""
    try:
        delete()
    except WRONG as error:
        again = view.refused(error.message)
        return templating.page(request, "act.html", status=error.status, view=again)
    request.scope[SUBJECT] = view.name
    return RedirectResponse(place, 303)


def _definition(context: Context, definition: DefinitionRecord) -> Question:
    return definition_question(definition, context.store.definitions.users(definition.id))


def _experiment(context: Context, experiment: ExperimentRecord) -> Question:
    runs = context.store.experiments.run_counts([experiment.id]).get(experiment.id, 0)
    return experiment_question(experiment, runs, context.store.experiments.live_jobs(experiment.id))


def _project(context: Context, project: ProjectRecord) -> Question:
    tables = (context.store.experiments, context.store.definitions)
    found = [table.page(None, project.id, None, 0, MAX_NAMES + 1) for table in tables]
    return project_question(project, *([one.name for one in page] for page in found))
