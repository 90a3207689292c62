"""Making and changing an experiment."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Query, Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.app.home import DEFINITION_ID
from edt_launch.service.errors import InvalidError, ServiceError
from edt_launch.service.experiments import data_folder
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
from edt_launch.service.http.dependencies import SUBJECT, ContextDep, CurrentUser
from edt_launch.service.web import templating
from edt_launch.service.web.form_fields import WRONG, FormKey, Value, Version, new_key, parsed, words

router = APIRouter(prefix="/experiments")

Json = dict[str, Any]

MAX_FOLDERS = 200
"""Folders that are offered as a source."""

Then = Annotated[str, Form(pattern=f"^(add|run|save|(remove|attributes):{DEFINITION_ID})$")]
"""What is done once the form of an experiment is saved, and with which of its training definitions."""


class ExperimentForm:
    """What the form of an experiment was sent with."""

    def __init__(
        self,
        name: Value = "",
        description: Value = "",
        source: Value = "",
        is_global: Annotated[str, Form(alias="global", max_length=8)] = "",
        command: Value = "",
        metric: Value = "",
        objective: Value = "",
        then: Then = "save",
        version: Version = "",
        key: FormKey = "",
    ) -> None:
        self.key = key or None
        self.values = {
            "name": name.strip(), "description": description.strip(), "source": source.strip(),
            "global": is_global, "command": command.strip(), "metric": metric.strip(),
            "objective": objective,
        }  # fmt: skip
        self.then, _, self.definition = then.partition(":")
        self.seen = int(version) if version else None

    def fields(self) -> Json:
        """The same as REST takes it."""
        command = words(self.values["command"]) if self.values["global"] else []
        if self.values["global"] and not command:
            raise InvalidError("command: the global one is empty", "write it, or do not use it")
        fields = {name: self.values[name] for name in ("name", "description", "source", "metric")}
        return {**fields, "command": command, "objective": self.values["objective"] or None}


GivenDep = Annotated[ExperimentForm, Depends()]
IsDraft = Annotated[bool, Query(alias="draft")]


@router.get("/new")
def ask(request: Request, context: ContextDep, user: CurrentUser, project: str) -> Response:
    """The form of a new experiment, for editors."""
    project_for(context, user, project, Role.EDITOR)
    view = _form(context, project_of(context, user, project), None, {}, None)
    return templating.page(request, "experiments/form.html", view=view)


@router.post("/new")
def create(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    given: GivenDep,
    project: Annotated[str, Form(max_length=128)],
) -> Response:
    """Make it, or show the form again with what was wrong."""
    try:
        spec = parsed(ExperimentSpec, {"project": project, **given.fields()})
        experiment = made.create(context, user, spec)
    except WRONG as error:
        view = _form(
            context, project_of(context, user, project), None, given.values, None, error=error.message
        )
        return templating.page(request, "experiments/form.html", status=error.status, view=view)
    request.scope[SUBJECT] = experiment.name
    place = f"add{draft(True)}" if given.then == "add" else "edit"
    return RedirectResponse(f"/experiments/{experiment.id}/{place}", 303)


@router.get("/{experiment_id}/edit")
def edit(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    experiment_id: str,
    is_draft: IsDraft = False,
) -> Response:
    """The form of an experiment, for editors."""
    made.experiment_for(context, user, experiment_id, Role.EDITOR)
    experiment = experiment_of(context, user, experiment_id)
    project = project_of(context, user, experiment["project"])
    view = _form(context, project, experiment, values_of(experiment), experiment["version"], is_draft)
    return templating.page(request, "experiments/form.html", view=view)


@router.post("/{experiment_id}/edit")
async def change(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    experiment_id: str,
    given: GivenDep,
    is_draft: IsDraft = False,
) -> Response:
    """Change it, and start it if that is wanted; or show the form again with what was wrong."""

    def act() -> None:
        if given.then == "run" and given.key and made.has_begun(context, user, experiment_id, given.key):
            _start(context, user, experiment_id, given.key)
            return
        fields = given.fields()
        if given.then == "remove":
            known = trainings_of(experiment_of(context, user, experiment_id))
            fields["trainings"] = tuple(one for one in known if one.definition != given.definition)
        changes = parsed(ExperimentChange, fields)
        given.seen = made.change(context, user, experiment_id, changes, given.seen).version
        if given.then == "run":
            _start(context, user, experiment_id, given.key)

    await run_in_threadpool(made.experiment_for, context, user, experiment_id, Role.EDITOR)
    try:
        await context.uploads.run(user.name, act)
    except WRONG as error:
        return _again(request, context, user, experiment_id, given, error, is_draft)
    places = {
        "add": f"/add{draft(is_draft)}", "save": "/edit", "run": "", "remove": f"/edit{draft(is_draft)}",
        "attributes": f"/add?tab=existing&definition={given.definition}{'&draft=1' if is_draft else ''}",
    }  # fmt: skip
    return RedirectResponse(f"/experiments/{experiment_id}{places[given.then]}", 303)


def _start(context: Context, user: UserRecord, experiment_id: str, key: str | None) -> None:
    made.start(context, user, made.planned_runs(context, user, experiment_id, RunSpec()), key)


def trainings_of(experiment: Json) -> list[TrainingSpec]:
    """What an experiment does with training definitions, as it would be sent."""
    return [
        TrainingSpec(
            definition=one["definition"], distribution=one["distribution"], min=one["min"], max=one["max"]
        )
        for one in experiment["trainings"]
    ]


def _again(
    request: Request,
    context: Context,
    user: UserRecord,
    experiment_id: str,
    given: ExperimentForm,
    error: ServiceError,
    is_draft: bool,
) -> Response:
    experiment = experiment_of(context, user, experiment_id)
    project = project_of(context, user, experiment["project"])
    said, seen = after_refusal(
        error, given.seen, experiment["version"], LABELS, compared(given.values), values_of(experiment)
    )
    view = _form(context, project, experiment, given.values, seen, is_draft, said)
    return templating.page(request, "experiments/form.html", status=error.status, view=view)


def _form(
    context: Context,
    project: Json,
    experiment: Json | None,
    values: dict[str, str],
    seen: int | None,
    is_draft: bool = False,
    error: str = "",
) -> FormView:
    is_valid = experiment is not None and bool(experiment["trainings"])
    is_draft = is_draft and experiment is not None and not experiment["runs"]
    folders = data_folder.folders(context.settings.data_folder, MAX_FOLDERS)
    return FormView(project, experiment, values, seen, folders, is_valid, is_draft, new_key(), error)
