"""Making and changing an experiment, and adding training definitions to it."""

import shlex
from typing import Annotated, Any

from fastapi import APIRouter, Depends, File, Form, Query, Request, Response, UploadFile
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from edt_launch.service import data_folder
from edt_launch.service import definitions as made_definitions
from edt_launch.service import experiments as made
from edt_launch.service.api.dependencies import SUBJECT, ContextDep, CurrentUser
from edt_launch.service.context import Context
from edt_launch.service.database.account_records import UserRecord
from edt_launch.service.database.project_records import Distribution, Role
from edt_launch.service.errors import InvalidError, ServiceError
from edt_launch.service.home import DEFINITION_ID
from edt_launch.service.project_spec import (
    HOROVOD,
    DefinitionSpec,
    ExperimentChange,
    ExperimentSpec,
    RunSpec,
    TrainingSpec,
    frameworks,
)
from edt_launch.service.projects import project_for
from edt_launch.service.web import preview as starting
from edt_launch.service.web import templating
from edt_launch.service.web.form_fields import FormKey, Value, new_key
from edt_launch.service.web.pages.experiments import (
    WRONG,
    Version,
    after_refusal,
    experiment_of,
    parsed,
    project_of,
)
from edt_launch.service.web.views.experiment_form import (
    ATTRIBUTES,
    LABELS,
    FormView,
    add_view,
    attributes,
    compared,
    draft,
    values_of,
)

router = APIRouter(prefix="/experiments")

Json = dict[str, Any]

MOST_FOLDERS = 200
"""Folders that are offered as a source."""

MOST_DEFINITIONS = 1000
"""Training definitions that are offered, the newest ones."""

UNKNOWN = "daaaaaaaa"
"""Stands for the id of a definition that has not been made yet."""


Then = Annotated[str, Form(pattern=f"^(add|run|save|(remove|attributes):{DEFINITION_ID})$")]
"""What is done once the form of an experiment is saved, and with which of its training definitions."""


class Given:
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


class DefinitionFields:
    """What a form was sent with that says what a training definition is."""

    def __init__(
        self, name: Value = "", description: Value = "", framework: Value = "", command: Value = ""
    ) -> None:
        self.values = {
            "name": name.strip(), "description": description.strip(), "framework": framework,
            "command": command.strip(),
        }  # fmt: skip


class Attributes:
    """What the form was sent with that adds a training definition, or changes how one is run."""

    def __init__(
        self,
        fields: Annotated[DefinitionFields, Depends()],
        definition: Value = "",
        distribution: Value = Distribution.ELASTIC,
        version: Version = "",
        least: Annotated[Value, Form(alias="min")] = "",
        most: Annotated[Value, Form(alias="max")] = "1",
    ) -> None:
        self.values = {
            **fields.values, "definition": definition, "distribution": distribution, "min": least.strip(),
            "max": most.strip(),
        }  # fmt: skip
        self.seen = int(version) if version else None

    def training(self, definition: str = UNKNOWN) -> TrainingSpec:
        """How a definition is run; raises `InvalidError`."""
        distribution = self.values["distribution"]
        sizes = ("min", "max") if distribution == Distribution.ELASTIC else ("max",)
        values = {name: self.values[name] or None for name in sizes}
        given = {"definition": definition, "distribution": distribution, **values}
        training: TrainingSpec = parsed(TrainingSpec, given)
        return training


GivenDep = Annotated[Given, Depends()]
AttributesDep = Annotated[Attributes, Depends()]
Tab = Annotated[str, Query(pattern="^(new|existing)$")]
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
            known = _trainings(experiment_of(context, user, experiment_id))
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


@router.get("/{experiment_id}/add")
def ask_definition(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    experiment_id: str,
    tab: Tab = "new",
    definition: Annotated[str, Query(max_length=16)] = "",
    is_draft: IsDraft = False,
) -> Response:
    """The form by which a training definition is added, or one that is there is run in another way."""
    made.experiment_for(context, user, experiment_id, Role.EDITOR)
    experiment = experiment_of(context, user, experiment_id)
    values = {"min": "1", "max": "1"} | attributes(experiment["trainings"], definition)
    return _add(request, context, user, experiment, values, tab, is_draft, experiment["version"])


@router.post("/{experiment_id}/add")
async def add_definition(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    experiment_id: str,
    given: AttributesDep,
    code: Annotated[UploadFile | None, File()] = None,
    tab: Tab = "new",
    is_draft: IsDraft = False,
) -> Response:
    """Add it, or show the form again with what was wrong."""

    def act() -> None:
        experiment = experiment_of(context, user, experiment_id)
        if tab == "existing":
            _associate(context, user, experiment, given.training(given.values["definition"]), given.seen)
            return
        given.training()  # before anything is kept: does it make sense?
        definition = _definition(context, user, experiment, given, code)
        try:
            _associate(context, user, experiment, given.training(definition))
        except BaseException:
            made_definitions.delete(context, user, definition)()
            raise

    await run_in_threadpool(made.experiment_for, context, user, experiment_id, Role.EDITOR)
    try:
        await context.uploads.run(user.name, act)
    except WRONG as error:
        experiment = experiment_of(context, user, experiment_id)
        present = attributes(experiment["trainings"], given.values["definition"])
        said, seen = after_refusal(
            error,
            given.seen,
            experiment["version"],
            ATTRIBUTES,
            given.values,
            dict.fromkeys(ATTRIBUTES, "") | present,
        )
        return _add(
            request, context, user, experiment, given.values, tab, is_draft, seen, said, status=error.status
        )
    return RedirectResponse(f"/experiments/{experiment_id}/edit{draft(is_draft)}", 303)


@router.post("/{experiment_id}/preview")
def preview(
    request: Request, context: ContextDep, user: CurrentUser, experiment_id: str, given: AttributesDep
) -> Response:
    """What starting a training definition would change, as lines."""
    request.scope[SUBJECT] = None
    made.experiment_for(context, user, experiment_id, Role.EDITOR)
    name, framework = given.values["name"], given.values["framework"]
    try:
        if given.values["definition"]:
            definition = made_definitions.definition_for(context, user, given.values["definition"])
            name, framework = definition.name, definition.framework
        least, most = given.training().bounds
        lines = starting.lines(
            context, user, "" if framework == HOROVOD else framework, name=name, min=least, max=most
        )
    except InvalidError as error:
        lines = [error.message]
    return templating.page(request, "preview.html", lines=lines)


def _start(context: Context, user: UserRecord, experiment_id: str, key: str | None) -> None:
    made.start(context, user, made.planned_runs(context, user, experiment_id, RunSpec()), key)


def words(text: str) -> list[str]:
    """The words of a command; raises `InvalidError`."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InvalidError(f"command: {error}", "close its quotes") from None


def _definition(
    context: Context, user: UserRecord, experiment: Json, given: Attributes, code: UploadFile | None
) -> str:
    values = {name: given.values[name] for name in ("name", "description", "framework")}
    command = words(given.values["command"])
    if not command and not experiment["command"]:
        raise InvalidError("command: neither this nor the experiment has one", "give an execution command")
    spec = parsed(DefinitionSpec, {**values, "project": experiment["project"], "command": command})
    has_code = code is not None and code.filename  # without a file, browsers send an empty one
    file, name = (code.file, code.filename or "") if code is not None and has_code else (None, "")
    return made_definitions.create(context, user, spec, file, name).id


def _associate(
    context: Context, user: UserRecord, experiment: Json, training: TrainingSpec, seen: int | None = None
) -> None:
    """Have an experiment run a definition in that way, at the definition's place if it has it already.

    `seen` is the version that was changed; None: the present one.
    """
    trainings = {one.definition: one for one in _trainings(experiment)} | {training.definition: training}
    changes = parsed(ExperimentChange, {"trainings": tuple(trainings.values())})
    made.change(context, user, experiment["id"], changes, experiment["version"] if seen is None else seen)


def _trainings(experiment: Json) -> list[TrainingSpec]:
    return [
        TrainingSpec(
            definition=one["definition"], distribution=one["distribution"], min=one["min"], max=one["max"]
        )
        for one in experiment["trainings"]
    ]


def _add(
    request: Request,
    context: Context,
    user: UserRecord,
    experiment: Json,
    values: dict[str, str],
    tab: str,
    is_draft: bool,
    seen: int | None,
    error: str = "",
    *,
    status: int = 200,
) -> Response:
    found = context.store.definitions.page(
        None, experiment["project"], None, 0, MOST_DEFINITIONS + 1, newest=True
    )
    known = [vars(one) for one in found[:MOST_DEFINITIONS]]
    is_new = tab == "new"
    view = add_view(
        experiment,
        known,
        frameworks(),
        values,
        is_new=is_new,
        is_draft=is_draft,
        seen=seen,
        error=error,
        are_all=len(found) <= MOST_DEFINITIONS,
    )
    return templating.page(request, "experiments/add.html", status=status, view=view)


def _again(
    request: Request,
    context: Context,
    user: UserRecord,
    experiment_id: str,
    given: Given,
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
    folders = data_folder.folders(context.settings.data_folder, MOST_FOLDERS)
    return FormView(project, experiment, values, seen, folders, is_valid, is_draft, new_key(), error)
