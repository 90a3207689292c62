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


def _ask_run(asked: Asked) -> Question:
    experiment = experiments.experiment_for(asked.context, asked.user, asked.id)
    return _question(asked, "Run", experiment.name, experiment.id, _planned_runs)


def _ask_again(asked: Asked) -> Question:
    run = experiments.run_for(asked.context, asked.user, asked.id)
    return _question(asked, "Run again", run.name, run.experiment, _planned_again)


def _question(
    asked: Asked, verb: str, name: str, experiment: str, planned: Callable[[Asked], Sequence[Planned]]
) -> Question:
    """What starting would change; after an error, only that is told."""
    lines = () if asked.error else service.preview(asked.context, asked.user, planned(asked))["lines"]
    return Question(verb, name, lines, f"/experiments/{experiment}", hidden=[("key", new_key())])


def _planned_runs(asked: Asked) -> Sequence[Planned]:
    return experiments.planned_runs(asked.context, asked.user, asked.id, RunSpec())


def _planned_again(asked: Asked) -> Sequence[Planned]:
    return experiments.planned_again(asked.context, asked.user, asked.id)


def _run(asked: Asked) -> str:
    return _start(asked, _planned_runs(asked))


def _run_again(asked: Asked) -> str:
    return _start(asked, _planned_again(asked))


def _start(asked: Asked, planned: Sequence[Planned]) -> str:
    experiments.start(asked.context, asked.user, planned, asked.given.key or None)
    return f"/experiments/{planned[0].experiment.id}"


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
        Action("/experiments/{id}/run", _ask_run, _run, KeyField, starts_jobs=True),
        Action("/experiments/runs/{id}/again", _ask_again, _run_again, KeyField, starts_jobs=True),
        Action("/experiments/runs/{id}/save", _ask_save, _save, NameField, starts_jobs=True),
    ]
)
