"""Deleting training definitions, experiments and projects, after a question that says what that does."""

from collections.abc import Sequence

from edt_launch.service.db.paging import PageQuery
from edt_launch.service.experiments import definitions, experiments, projects
from edt_launch.service.experiments.pages import searches
from edt_launch.service.experiments.records import Role
from edt_launch.service.web.actions import Action, Asked, routes
from edt_launch.service.web.asking import Question

MAX_NAMES = 10
"""Things that are named of those that keep something from being deleted."""


def _ask_definition(asked: Asked) -> Question:
    definition = definitions.definition_for(asked.context, asked.user, asked.id, Role.EDITOR)
    users = asked.context.store.definitions.users(definition.id)
    line = "No experiment uses it. Its code is deleted, too; runs of it stay."
    if users:
        verb = "uses" if len(users) == 1 else "use"
        line = f"It cannot be deleted yet, since {_named('experiment', users)} {verb} it. Take it out first."
    back = f"/experiments/projects/{definition.project}"
    return Question("Delete", definition.name, [line], back, is_possible=not users)


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
    line = {
        0: "Nothing has been run in it. Its training definitions stay.",
        1: "It is deleted with its run, whose job stays. So do its training definitions.",
    }.get(runs, f"It is deleted with its {runs} runs, whose jobs stay. So do its training definitions.")
    if live := store.live_jobs(experiment.id):
        named = ", ".join(live[:MAX_NAMES]) + (" and others" if len(live) > MAX_NAMES else "")
        verb, them = ("has", "it") if len(live) == 1 else ("have", "them")
        line = f"It cannot be deleted yet, since {named} {verb} not ended. Stop {them}, or wait."
    return Question("Delete", experiment.name, [line], f"/experiments/{experiment.id}", is_possible=not live)


def _delete_experiment(asked: Asked) -> str:
    experiment = experiments.experiment_for(asked.context, asked.user, asked.id)
    asked.carry_out(experiments.delete(asked.context, asked.user, experiment.id))
    asked.note(experiment.name)
    return f"/experiments/projects/{experiment.project}" if experiment.project else "/experiments"


def _ask_project(asked: Asked) -> Question:
    store = asked.context.store
    project = projects.project_for(asked.context, asked.user, asked.id, Role.MANAGER)
    some = PageQuery(MAX_NAMES)
    found = {
        "experiment": [one.name for one in store.experiments.page(None, project.id, None, some)],
        "training definition": [one.name for one in store.definitions.page(None, project.id, None, some)],
    }
    line = "Nothing is in it."
    if any(found.values()):
        named = " and ".join(_named(kind, names) for kind, names in found.items() if names)
        verb = "is" if sum(map(len, found.values())) == 1 else "are"
        line = f"It cannot be deleted yet, since {named} {verb} in it. Delete what is in it first."
    back = f"/experiments/projects/{project.id}"
    return Question("Delete", project.name, [line], back, is_possible=not any(found.values()))


def _delete_project(asked: Asked) -> str:
    project = projects.project_for(asked.context, asked.user, asked.id)
    projects.delete(asked.context, asked.user, project.id)
    asked.note(project.name)
    return "/experiments"


def _named(kind: str, names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:MAX_NAMES]))
    more = " and others" if len(names) > MAX_NAMES else ""
    return f"the {kind}{'s' if len(names) > 1 else ''} {shown}{more}"


router = routes(
    [
        Action("/experiments/definitions/{id}/delete", _ask_definition, _delete_definition),
        Action("/experiments/projects/{id}/delete", _ask_project, _delete_project),
        Action("/experiments/{id}/delete", _ask_experiment, _delete_experiment),
    ]
)
