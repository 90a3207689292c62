"""Adding training definitions to an experiment, and changing how they are run there."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from fastapi import Form, Request, Response
from pydantic import BaseModel, Field, ValidationError

from edt_launch.service.db.paging import PageQuery
from edt_launch.service.errors import InvalidError
from edt_launch.service.experiments import definitions as made_definitions
from edt_launch.service.experiments import experiments as made
from edt_launch.service.experiments.pages.experiment_fields import DraftField, ExperimentFields, trainings_of
from edt_launch.service.experiments.pages.experiments import after_refusal, experiment_of, project_of
from edt_launch.service.experiments.pages.views.experiment_form import (
    ATTRIBUTES,
    AddView,
    attributes,
    draft,
)
from edt_launch.service.experiments.projects import project_for
from edt_launch.service.experiments.records import Distribution, ExperimentRecord, Role
from edt_launch.service.experiments.spec import HOROVOD, DefinitionSpec, ExperimentChange, TrainingSpec
from edt_launch.service.http.dependencies import SUBJECT, ContextDep, CurrentUser
from edt_launch.service.jobs.pages import preview as starting
from edt_launch.service.web import templating
from edt_launch.service.web.actions import Action, Asked, routes
from edt_launch.service.web.crumbs import Crumb
from edt_launch.service.web.crumbs import project as crumbs
from edt_launch.service.web.form_fields import CodeField, Text, VersionField, parsed, words

Json = dict[str, Any]

MAX_DEFINITIONS = 1000
"""Training definitions that are offered, the newest ones."""

NEW = "new"
"""Stands in addresses for the id of an experiment that has not been made yet."""

FORM = "experiments/add.html"

UNKNOWN = "daaaaaaaa"
"""Stands for the id of a definition that has not been made yet."""


class DefinitionFields(BaseModel):
    """What says what a training definition is."""

    name: Text = ""
    description: Text = ""
    framework: Text = ""
    command: Text = ""

    @property
    def values(self) -> dict[str, str]:
        """What is written."""
        texts = {"name": self.name, "description": self.description, "command": self.command}
        return {name: text.strip() for name, text in texts.items()} | {"framework": self.framework}


class AttributesFields(DefinitionFields, VersionField, DraftField):
    """What adds a training definition, or changes how one is run."""

    definition: Text = ""
    distribution: Text = Distribution.ELASTIC
    min: Text = ""
    max: Text = "1"
    tab: Literal["new", "existing"] = "new"

    @property
    def values(self) -> dict[str, str]:
        """What is written."""
        own = {"definition": self.definition, "distribution": self.distribution}
        return {**super().values, **own, "min": self.min.strip(), "max": self.max.strip()}

    def training(self, definition: str = UNKNOWN) -> TrainingSpec:
        """How a definition is run; raises `InvalidError`."""
        sizes = ("min", "max") if self.distribution == Distribution.ELASTIC else ("max",)
        values = {name: self.values[name] or None for name in sizes}
        return parsed(TrainingSpec, {"definition": definition, "distribution": self.distribution, **values})


class AddFields(AttributesFields, CodeField):
    """The same with code for a new definition."""


class FirstFields(AddFields):
    """The same for an experiment that is made with it: `begun` is what its form was sent with, in JSON."""

    begun: str = Field("", max_length=2**20)

    @property
    def experiment(self) -> ExperimentFields:
        """What its form was sent with; raises `InvalidError`."""
        try:
            return ExperimentFields.model_validate_json(self.begun)
        except ValidationError:
            raise InvalidError("begun: this is no experiment", "begin with New experiment") from None


def _ask(asked: Asked) -> AddView:
    made.started_by_hand(asked.context, asked.user, asked.id)
    experiment = experiment_of(asked.context, asked.user, asked.id)
    present = attributes(experiment["trainings"], asked.given.definition)
    if asked.error is None:
        return _view(asked, experiment, _first(asked) | present, experiment["version"])
    values, known = asked.given.values, dict.fromkeys(ATTRIBUTES, "") | present
    seen = experiment["version"]
    said, seen = after_refusal(asked.error, asked.given.seen, seen, ATTRIBUTES, values, known)
    return _view(asked, experiment, values, seen, said)


def _ask_begun(asked: Asked) -> AddView:
    given: ExperimentFields = asked.given.experiment
    values = _first(asked) if asked.error is None else asked.given.values
    project = project_for(asked.context, asked.user, given.project, Role.EDITOR)
    experiment = {**given.fields, "id": "", "project": project.id, "trainings": []}
    return _view(asked, experiment, values, None, begun=given)


def _first(asked: Asked) -> dict[str, str]:
    """What the form begins with."""
    devices = sum(len(host.devices) for host in asked.context.store.hosts.all())
    return {"min": "1", "max": str(devices or 1)}


def _view(
    asked: Asked,
    experiment: Json,
    values: Mapping[str, str],
    seen: int | None,
    said: str = "",
    *,
    begun: ExperimentFields | None = None,
) -> AddView:
    newest = PageQuery(MAX_DEFINITIONS, newest=True)
    found = asked.context.store.definitions.page(None, experiment["project"], None, newest)
    offered, older = newest.cut(found)
    project = project_of(asked.context, asked.user, experiment["project"])
    above = crumbs(project["id"], project["name"])
    if begun is None:
        above.append(Crumb(f"/experiments/{asked.id}", experiment["name"]))
    is_draft = begun is None and asked.given.draft
    back = f"/experiments/{asked.id}/edit{draft(is_draft)}" if begun is None else begun.address
    return AddView(
        experiment,
        offered,
        values,
        asked.given.tab == "new",
        is_draft,
        seen,
        older is None,
        asked.context.store.experiments.last_trainings(project["id"]),
        above,
        "" if begun is None else begun.written,
        back,
        said,
    )


def _add(asked: Asked) -> str:
    given: AddFields = asked.given
    made.started_by_hand(asked.context, asked.user, asked.id)
    experiment = experiment_of(asked.context, asked.user, asked.id)
    seen = given.seen if given.tab == "existing" else None
    _with_definition(asked, experiment, lambda training: _associate(asked, experiment, training, seen))
    return f"/experiments/{asked.id}/edit{draft(given.draft)}"


def _add_begun(asked: Asked) -> str:
    """Make the experiment, with the definition."""
    begun: ExperimentFields = asked.given.experiment
    spec = begun.spec
    made.check(asked.context, asked.user, spec)
    project = project_for(asked.context, asked.user, spec.project, Role.EDITOR)

    def create(training: TrainingSpec) -> ExperimentRecord:
        whole = spec.model_copy(update={"trainings": (training,)})
        return made.create(asked.context, asked.user, whole)

    experiment = _with_definition(asked, {**begun.fields, "project": project.id}, create)
    asked.note(experiment.name)
    return f"/experiments/{experiment.id}/edit{draft(True)}"


def _with_definition(
    asked: Asked, experiment: Json, run: Callable[[TrainingSpec], ExperimentRecord]
) -> ExperimentRecord:
    """Have an experiment `run` the chosen definition, or a new one, which is kept only if it does."""
    given: AddFields = asked.given
    if given.tab == "existing":
        return run(given.training(given.definition))
    given.training()  # before anything is kept: does it make sense?
    definition = _definition(asked, experiment)
    try:
        return run(given.training(definition))
    except BaseException:
        made_definitions.delete(asked.context, asked.user, definition)()
        raise


def _definition(asked: Asked, experiment: Json) -> str:
    values = asked.given.values
    command = words(values["command"])
    if not command and not experiment["command"]:
        raise InvalidError("command: neither this nor the experiment has one", "give an execution command")
    fields = {name: values[name] for name in ("name", "description", "framework")}
    spec = parsed(DefinitionSpec, {**fields, "project": experiment["project"], "command": command})
    return made_definitions.create(asked.context, asked.user, spec, *asked.given.archive).id


def _associate(
    asked: Asked, experiment: Json, training: TrainingSpec, seen: int | None = None
) -> ExperimentRecord:
    """Have an experiment run a definition in that way, at the definition's place if it has it already.

    `seen` is the version that was changed; None: the present one.
    """
    trainings = {one.definition: one for one in trainings_of(experiment)} | {training.definition: training}
    changes = parsed(ExperimentChange, {"trainings": tuple(trainings.values())})
    version = experiment["version"] if seen is None else seen
    return made.change(asked.context, asked.user, experiment["id"], changes, version)


router = routes(
    [
        Action(
            "/experiments/{id}/add",
            _ask,
            _add,
            AddFields,
            starts_jobs=True,
            template=FORM,
        ),
        Action(
            "/experiments/new/definition",
            _ask_begun,
            _add_begun,
            FirstFields,
            starts_jobs=True,
            template=FORM,
        ),
    ]
)


@router.post("/experiments/{experiment_id}/preview")
def preview(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    experiment_id: str,
    given: Annotated[AttributesFields, Form()],
) -> Response:
    """What starting a training definition would change, as lines; of an experiment to be made, `new`."""
    request.scope[SUBJECT] = None
    if experiment_id != NEW:
        made.started_by_hand(context, user, experiment_id)
    name, framework = given.values["name"], given.framework
    try:
        if given.definition:
            definition = made_definitions.definition_for(context, user, given.definition)
            name, framework = definition.name, definition.framework
        least, most = given.training().bounds
        kind = "" if framework == HOROVOD else framework
        lines = starting.lines(context, user, kind, name=name, min=least, max=most)
    except InvalidError as error:
        lines = [error.message]
    return templating.page(request, "preview.html", lines=lines)
