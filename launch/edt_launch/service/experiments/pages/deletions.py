"""Deleting training definitions, experiments and projects, after a question that says what that does."""

from edt_launch.service.db.paging import PageQuery
from edt_launch.service.experiments import definitions, experiments, projects
from edt_launch.service.experiments.pages import searches
from edt_launch.service.experiments.pages.views.deletions import (
    MAX_NAMES,
    definition_question,
    experiment_question,
    project_question,
)
from edt_launch.service.experiments.records import Role
from edt_launch.service.web.actions import Action, Asked, routes
from edt_launch.service.web.asking import Question


def _ask_definition(asked: Asked) -> Question:
    definition = definitions.definition_for(asked.context, asked.user, asked.id, Role.EDITOR)
    return definition_question(definition, asked.context.store.definitions.users(definition.id))


def _delete_definition(asked: Asked) -> str:
    definition = definitions.definition_for(asked.context, asked.user, asked.id)
    asked.carry_out([definitions.delete(asked.context, asked.user, definition.id)])
    asked.note(definition.name)
    return f"/experiments/projects/{definition.project}"


def _ask_experiment(asked: Asked) -> Question:
    store = asked.context.store.experiments
    experiment = experiments.experiment_for(asked.context, asked.user, asked.id, Role.EDITOR)
    if experiment.algorithm:
        return searches.question(asked, "delete")
    runs = store.run_counts([experiment.id]).get(experiment.id, 0)
    return experiment_question(experiment, runs, store.live_jobs(experiment.id))


def _delete_experiment(asked: Asked) -> str:
    experiment = experiments.experiment_for(asked.context, asked.user, asked.id)
    asked.carry_out(experiments.delete(asked.context, asked.user, experiment.id))
    asked.note(experiment.name)
    return f"/experiments/projects/{experiment.project}" if experiment.project else "/experiments"


def _ask_project(asked: Asked) -> Question:
    project = projects.project_for(asked.context, asked.user, asked.id, Role.MANAGER)
    tables = (asked.context.store.experiments, asked.context.store.definitions)
    found = [table.page(None, project.id, None, PageQuery(MAX_NAMES)) for table in tables]
    return project_question(project, *([one.name for one in page] for page in found))


def _delete_project(asked: Asked) -> str:
    project = projects.project_for(asked.context, asked.user, asked.id)
    projects.delete(asked.context, asked.user, project.id)
    asked.note(project.name)
    return "/experiments"


router = routes(
    [
        Action("/experiments/definitions/{id}/delete", _ask_definition, _delete_definition),
        Action("/experiments/projects/{id}/delete", _ask_project, _delete_project),
        Action("/experiments/{id}/delete", _ask_experiment, _delete_experiment),
    ]
)
