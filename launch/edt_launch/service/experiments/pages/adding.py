"""Adding training definitions to an experiment, and changing how they are run there."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, File, Form, Query, Request, Response, UploadFile
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.db.paging import PageQuery
from edt_launch.service.errors import InvalidError
from edt_launch.service.experiments import definitions as made_definitions
from edt_launch.service.experiments import experiments as made
from edt_launch.service.experiments.pages.experiment_form import IsDraft, trainings_of
from edt_launch.service.experiments.pages.experiments import after_refusal, experiment_of
from edt_launch.service.experiments.pages.views.experiment_form import ATTRIBUTES, add_view, attributes, draft
from edt_launch.service.experiments.records import Distribution, Role
from edt_launch.service.experiments.spec import (
    HOROVOD,
    DefinitionSpec,
    ExperimentChange,
    TrainingSpec,
    frameworks,
)
from edt_launch.service.http.dependencies import SUBJECT, ContextDep, CurrentUser
from edt_launch.service.jobs.pages import preview as starting
from edt_launch.service.web import templating
from edt_launch.service.web.form_fields import WRONG, Value, Version, chosen, parsed, words

router = APIRouter(prefix="/experiments")

Json = dict[str, Any]

MAX_DEFINITIONS = 1000
"""Training definitions that are offered, the newest ones."""

UNKNOWN = "daaaaaaaa"
"""Stands for the id of a definition that has not been made yet."""


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


AttributesDep = Annotated[Attributes, Depends()]
Tab = Annotated[str, Query(pattern="^(new|existing)$")]


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
    devices = sum(len(host.devices) for host in context.store.hosts.all())
    values = {"min": "1", "max": str(devices or 1)} | attributes(experiment["trainings"], definition)
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


def _definition(
    context: Context, user: UserRecord, experiment: Json, given: Attributes, code: UploadFile | None
) -> str:
    values = {name: given.values[name] for name in ("name", "description", "framework")}
    command = words(given.values["command"])
    if not command and not experiment["command"]:
        raise InvalidError("command: neither this nor the experiment has one", "give an execution command")
    spec = parsed(DefinitionSpec, {**values, "project": experiment["project"], "command": command})
    sent = chosen(code)
    file, name = (None, "") if sent is None else (sent.file, sent.filename or "")
    return made_definitions.create(context, user, spec, file, name).id


def _associate(
    context: Context, user: UserRecord, experiment: Json, training: TrainingSpec, seen: int | None = None
) -> None:
    """Have an experiment run a definition in that way, at the definition's place if it has it already.

    `seen` is the version that was changed; None: the present one.
    """
    trainings = {one.definition: one for one in trainings_of(experiment)} | {training.definition: training}
    changes = parsed(ExperimentChange, {"trainings": tuple(trainings.values())})
    made.change(context, user, experiment["id"], changes, experiment["version"] if seen is None else seen)


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
    newest = PageQuery(MAX_DEFINITIONS, newest=True)
    found, _ = newest.cut(context.store.definitions.page(None, experiment["project"], None, newest))
    known = [vars(one) for one in found]
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
        are_all=len(found) <= MAX_DEFINITIONS,
    )
    return templating.page(request, "experiments/add.html", status=status, view=view)
