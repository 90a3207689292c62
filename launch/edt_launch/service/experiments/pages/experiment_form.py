"""Making and changing an experiment."""

from typing import Any

from pydantic import BaseModel, Field

from edt_launch.service.app.home import DEFINITION_ID
from edt_launch.service.data import service as data
from edt_launch.service.errors import InvalidError
from edt_launch.service.experiments import experiments as made
from edt_launch.service.experiments.pages.experiments import after_refusal, experiment_of, project_of
from edt_launch.service.experiments.pages.views.experiment_form import (
    LABELS,
    FormView,
    compared,
    draft,
    values_of,
)
from edt_launch.service.experiments.projects import project_for
from edt_launch.service.experiments.records import Role
from edt_launch.service.experiments.spec import ExperimentChange, ExperimentSpec, RunSpec, TrainingSpec
from edt_launch.service.web.actions import Action, Asked, routes
from edt_launch.service.web.form_fields import KeyField, Text, VersionField, new_key, parsed, words

Json = dict[str, Any]

ADD, RUN, SAVE, REMOVE, ATTRIBUTES = "add", "run", "save", "remove", "attributes"
"""What is done once the form is saved."""


class DraftField(BaseModel):
    """Whether an experiment has only been made to have training definitions added."""

    draft: bool = False


class ExperimentFields(VersionField, KeyField, DraftField):
    """Of an experiment; `then` is what is done once it is saved, with which of its training definitions."""

    project: str = Field("", max_length=128)
    name: Text = ""
    description: Text = ""
    source: Text = ""
    is_global: str = Field("", alias="global", max_length=8)
    command: Text = ""
    metric: Text = ""
    objective: Text = ""
    then: str = Field(SAVE, pattern=f"^({ADD}|{RUN}|{SAVE}|({REMOVE}|{ATTRIBUTES}):{DEFINITION_ID})$")

    @property
    def values(self) -> dict[str, str]:
        """What is written."""
        texts = ("name", "description", "source", "command", "metric")
        stripped = {name: getattr(self, name).strip() for name in texts}
        return {**stripped, "global": self.is_global, "objective": self.objective}

    @property
    def fields(self) -> Json:
        """The same as REST takes it; raises `InvalidError`."""
        values = self.values
        command = words(values["command"]) if self.is_global else []
        if self.is_global and not command:
            raise InvalidError("command: the global one is empty", "write it, or do not use it")
        fields = {name: values[name] for name in ("name", "description", "source", "metric")}
        return {**fields, "command": command, "objective": self.objective or None}


def _ask_new(asked: Asked) -> FormView:
    project_for(asked.context, asked.user, asked.given.project, Role.EDITOR)
    values = {} if asked.error is None else asked.given.values
    return _form(asked, project_of(asked.context, asked.user, asked.given.project), None, values, None)


def _create(asked: Asked) -> str:
    spec = parsed(ExperimentSpec, {"project": asked.given.project, **asked.given.fields})
    known = made.begun(asked.context, asked.user, spec)
    if known is None:
        experiment = made.create(asked.context, asked.user, spec)
    else:
        changes = parsed(ExperimentChange, asked.given.fields)
        experiment = made.change(asked.context, asked.user, known.id, changes, None)
    asked.note(experiment.name)
    place = f"add{draft(True)}" if asked.given.then == ADD else "edit"
    return f"/experiments/{experiment.id}/{place}"


def _ask_edit(asked: Asked) -> FormView:
    made.started_by_hand(asked.context, asked.user, asked.id)
    experiment = experiment_of(asked.context, asked.user, asked.id)
    project = project_of(asked.context, asked.user, experiment["project"])
    values, seen, said = values_of(experiment), experiment["version"], ""
    if asked.error is not None:
        given = asked.given.values
        said, seen = after_refusal(asked.error, asked.given.seen, seen, LABELS, compared(given), values)
        values = given
    return _form(asked, project, experiment, values, seen, said)


def _change(asked: Asked) -> str:
    """Change it, and start it if that is wanted."""
    given: ExperimentFields = asked.given
    context, user = asked.context, asked.user
    made.started_by_hand(context, user, asked.id)
    then, _, definition = given.then.partition(":")
    key = given.key or None
    places = {
        ADD: f"/add{draft(given.draft)}", SAVE: "/edit", RUN: "", REMOVE: f"/edit{draft(given.draft)}",
        ATTRIBUTES: f"/add?tab=existing&definition={definition}{'&draft=1' if given.draft else ''}",
    }  # fmt: skip
    if then != RUN or key is None or not made.has_begun(context, user, asked.id, key):
        fields = given.fields
        if then == REMOVE:
            known = trainings_of(experiment_of(context, user, asked.id))
            fields["trainings"] = tuple(one for one in known if one.definition != definition)
        changed = made.change(context, user, asked.id, parsed(ExperimentChange, fields), given.seen)
        given.version = str(changed.version)
    if then == RUN:
        made.start(context, user, made.planned_runs(context, user, asked.id, RunSpec()), key)
    return f"/experiments/{asked.id}{places[then]}"


def trainings_of(experiment: Json) -> list[TrainingSpec]:
    """What an experiment does with training definitions, as it would be sent."""
    return [
        TrainingSpec(
            definition=one["definition"], distribution=one["distribution"], min=one["min"], max=one["max"]
        )
        for one in experiment["trainings"]
    ]


def _form(
    asked: Asked,
    project: Json,
    experiment: Json | None,
    values: dict[str, str],
    seen: int | None,
    error: str = "",
) -> FormView:
    is_valid = experiment is not None and bool(experiment["trainings"])
    is_draft = asked.given.draft and experiment is not None and not experiment["runs"]
    folders = data.offered(asked.context, asked.user)
    return FormView(project, experiment, values, seen, folders, is_valid, is_draft, new_key(), error)


FORM = "experiments/form.html"

router = routes(
    [
        Action("/experiments/new", _ask_new, _create, ExperimentFields, template=FORM),
        Action(
            "/experiments/{id}/edit", _ask_edit, _change, ExperimentFields, starts_jobs=True, template=FORM
        ),
    ]
)
