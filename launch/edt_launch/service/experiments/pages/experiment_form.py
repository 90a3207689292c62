"""Making and changing an experiment."""

from typing import Any

from edt_launch.service.data import service as data
from edt_launch.service.experiments import experiments as made
from edt_launch.service.experiments.pages.experiment_fields import (
    ADD,
    ATTRIBUTES,
    REMOVE,
    RUN,
    SAVE,
    ExperimentFields,
    trainings_of,
)
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
from edt_launch.service.experiments.spec import ExperimentChange, RunSpec
from edt_launch.service.web.actions import Action, Asked, routes
from edt_launch.service.web.form_fields import new_key, parsed

Json = dict[str, Any]


def _ask_new(asked: Asked) -> FormView:
    project_for(asked.context, asked.user, asked.given.project, Role.EDITOR)
    project = project_of(asked.context, asked.user, asked.given.project)
    return _form(asked, project, None, asked.given.values, None)


def _create(asked: Asked) -> str:
    """Make it, or else go on with the form that adds its first training definition."""
    given: ExperimentFields = asked.given
    if given.then == ADD:
        made.check(asked.context, asked.user, given.spec)
        return given.addition
    experiment = made.create(asked.context, asked.user, given.spec)
    asked.note(experiment.name)
    return f"/experiments/{experiment.id}/edit"


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
        fields, experiment = given.fields, experiment_of(context, user, asked.id)
        if then == REMOVE:
            known = trainings_of(experiment)
            fields["trainings"] = tuple(one for one in known if one.definition != definition)
        changed = made.change(context, user, asked.id, parsed(ExperimentChange, fields), given.seen)
        given.version = str(changed.version)
        if then == REMOVE and given.draft and not fields["trainings"] and not experiment["runs"]:
            made.delete(context, user, asked.id)  # it is as if it had not been begun
            return given.address
    if then == RUN:
        made.start(context, user, made.planned_runs(context, user, asked.id, RunSpec()), key)
    return f"/experiments/{asked.id}{places[then]}"


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
