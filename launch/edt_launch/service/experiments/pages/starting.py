"""Running experiments, running their runs again, and saving runs as training definitions."""

from collections.abc import Callable, Sequence

from pydantic import BaseModel

from edt_launch.service.experiments import experiments, service
from edt_launch.service.experiments.definitions import create as create_definition
from edt_launch.service.experiments.experiments import Planned
from edt_launch.service.experiments.records import Role
from edt_launch.service.experiments.spec import DefinitionSpec, RunSpec
from edt_launch.service.web.actions import Action, Asked, routes
from edt_launch.service.web.asking import Field, Question
from edt_launch.service.web.form_fields import KeyField, Text, new_key, parsed


class NameField(BaseModel):
    """Of a new training definition."""

    name: Text = ""


def _action(path: str, verb: str, planned: Callable[[Asked], Sequence[Planned]]) -> Action:
    """Starting runs, after a question that says what that would change; after an error, only that is told."""

    def ask(asked: Asked) -> Question:
        runs = planned(asked)
        one, lines = runs[0], () if asked.error else service.preview(asked.context, asked.user, runs)["lines"]
        name = one.experiment.name if verb == "Run" else one.name
        back = f"/experiments/{one.experiment.id}"
        return Question(verb, name, lines, back, hidden=[("key", new_key())])

    def start(asked: Asked) -> str:
        runs = planned(asked)
        experiments.start(asked.context, asked.user, runs, asked.given.key or None)
        return f"/experiments/{runs[0].experiment.id}"

    return Action(path, ask, start, KeyField, starts_jobs=True)


def _planned(asked: Asked) -> Sequence[Planned]:
    return experiments.planned_runs(asked.context, asked.user, asked.id, RunSpec())


def _planned_again(asked: Asked) -> Sequence[Planned]:
    return experiments.planned_again(asked.context, asked.user, asked.id)


def _ask_save(asked: Asked) -> Question:
    run = experiments.run_for(asked.context, asked.user, asked.id, Role.EDITOR)
    fields = [Field("name", "Name of the training definition", asked.given.name, False)]
    back = f"/experiments/{run.experiment}"
    return Question("Save definition of", run.name, (), back, fields, button="Save")


def _save(asked: Asked) -> str:
    """Make a training definition of a run."""
    run = experiments.run_for(asked.context, asked.user, asked.id, Role.EDITOR)
    project = experiments.experiment_for(asked.context, asked.user, run.experiment).project
    given = {"project": project, "name": asked.given.name.strip(), "command": run.spec["command"]}
    if framework := run.spec.get("framework"):
        given["framework"] = framework
    spec = parsed(DefinitionSpec, {**given, "code_of": run.job})
    create_definition(asked.context, asked.user, spec, None, "")
    return f"/experiments/projects/{project}"


router = routes(
    [
        _action("/experiments/{id}/run", "Run", _planned),
        _action("/experiments/runs/{id}/again", "Run again", _planned_again),
        Action("/experiments/runs/{id}/save", _ask_save, _save, NameField, starts_jobs=True),
    ]
)
