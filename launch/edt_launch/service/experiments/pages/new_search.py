"""Starting a search in a form."""

import shlex
from typing import Annotated, Any

from fastapi import APIRouter, Depends, File, Form, Query, Request, Response, UploadFile
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.errors import ForbiddenError, InvalidError, NotFoundError, ServiceError
from edt_launch.service.experiments import data_folder, definitions, experiments
from edt_launch.service.experiments.experiments import run_fields
from edt_launch.service.experiments.pages.views import new_search as views
from edt_launch.service.experiments.records import DefinitionRecord, Role
from edt_launch.service.experiments.searches import service as searches
from edt_launch.service.experiments.searches.records import SearchRecord
from edt_launch.service.experiments.searches.trial_job import SubmittedSearch
from edt_launch.service.http.dependencies import SUBJECT, ContextDep, CurrentUser
from edt_launch.service.web import templating
from edt_launch.service.web.form_fields import WRONG, FormKey, Value, chosen, new_key, parsed, words

router = APIRouter(prefix="/searches/new")

Values = Annotated[list[str] | None, Form(max_length=views.MAX_ROWS)]


class SearchForm:
    """What the form was sent with."""

    def __init__(
        self,
        name: Value = "",
        command: Value = "",
        code_of: Value = "",
        definition: Annotated[str, Form(max_length=16)] = "",
        source: Value = "",
        metric: Value = "",
        objective: Value = "minimize",
        algorithm: Value = "random",
        max_trials: Value = "",
        max_parallel: Value = "1",
        max_minutes: Value = "",
        max_budget: Value = "",
        seed: Value = "",
        least: Annotated[Value, Form(alias="min")] = "1",
        most: Annotated[Value, Form(alias="max")] = "1",
        priority: Value = "0",
        parameter: Values = None,
        kind: Values = None,
        key: FormKey = "",
        values: Values = None,
        low: Values = None,
        high: Values = None,
        step: Values = None,
    ) -> None:
        texts = {
            "name": name, "command": command, "code_of": code_of, "source": source, "metric": metric,
            "objective": objective, "algorithm": algorithm, "max_trials": max_trials,
            "max_parallel": max_parallel, "max_minutes": max_minutes, "max_budget": max_budget,
            "seed": seed, "min": least, "max": most, "priority": priority,
        }  # fmt: skip
        self.definition = definition
        self.key = key or None
        self.texts = {field: text.strip() for field, text in texts.items()}
        columns = [parameter or [], kind or [], values or [], low or [], high or [], step or []]
        if len({len(column) for column in columns}) > 1:
            raise InvalidError("parameters: their fields do not belong together", "use the form of this page")
        cells = zip(*columns, strict=True)
        self.rows = [views.Row(*(cell.strip() for cell in row)) for row in cells]


@router.get("")
def ask(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    job: Annotated[str, Query(max_length=16)] = "",
    definition: Annotated[str, Query(max_length=16)] = "",
    experiment: Annotated[str, Query(max_length=16)] = "",
) -> Response:
    """The form, with the command and the files of a job or of a training definition if one is named."""
    if definition:
        view = _of_definition(context, user, definition, experiment)
        return templating.page(request, "new_search.html", view=view)
    given = {}
    if job:
        found = context.job_of(job, user)
        given = {
            "code_of": found.id,
            "command": shlex.join(found.command),
            "min": str(found.min),
            "max": str(found.max),
        }
    return templating.page(request, "new_search.html", view=views.new_search(new_key(), given))


@router.post("")
async def create(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    given: Annotated[SearchForm, Depends()],
    code: Annotated[UploadFile | None, File()] = None,
) -> Response:
    """Create it, or show the form again with what was wrong."""
    try:
        search = await context.uploads.run(user.name, lambda: _submit(context, user, given, code))
    except WRONG as error:
        return await run_in_threadpool(_again, request, context, user, given, error)
    request.scope[SUBJECT] = search.id
    return RedirectResponse(f"/searches/{search.id}", 303)


def _again(
    request: Request, context: Context, user: UserRecord, given: SearchForm, error: ServiceError
) -> Response:
    wrong = error.message
    try:
        definition = _definition(context, user, given.definition) if given.definition else None
    except (ForbiddenError, NotFoundError):  # that is the error which is told
        definition = None
    view = views.new_search(new_key(), given.texts, given.rows, wrong, definition)
    return templating.page(request, "new_search.html", status=error.status, view=view)


def _submit(context: Context, user: UserRecord, given: SearchForm, code: UploadFile | None) -> SearchRecord:
    sent = chosen(code)
    file = None if sent is None else sent.file
    if not given.definition:
        return searches.submit(context, user, _spec(given, {}), file, given.key)
    definition = _definition(context, user, given.definition)
    source = data_folder.folder(context.settings.data_folder, given.texts["source"])
    spec = _spec(given, run_fields(definition.framework, source, {}))
    is_other = file is not None or spec.job.code_of is not None
    known = None if is_other else context.store.definitions.code(definition.id, definition.code)
    with definitions.opened(context, definition.id, known) as kept:
        return searches.submit(context, user, spec, file or kept, given.key)


def _definition(context: Context, user: UserRecord, definition_id: str) -> DefinitionRecord:
    return definitions.definition_for(context, user, definition_id, Role.EDITOR)


def _of_definition(
    context: Context, user: UserRecord, definition_id: str, experiment_id: str
) -> views.NewSearch:
    """The form with a training definition as an experiment has it, if one is named."""
    definition = _definition(context, user, definition_id)
    given = {"command": shlex.join(definition.command)}
    if experiment_id:
        experiment = experiments.experiment_for(context, user, experiment_id)
        given |= {
            "source": experiment.source,
            "command": shlex.join(experiment.command or definition.command),
        }
        for one in context.store.experiments.trainings(experiment.id):
            if one.definition == definition.id:
                given |= {"min": str(one.least), "max": str(one.most)}
    return views.new_search(new_key(), given, definition=definition)


def _spec(given: SearchForm, fields: dict[str, Any]) -> SubmittedSearch:
    """The search as REST takes it; `fields` are more of its job. Raises `InvalidError`."""
    texts = {field: text for field, text in given.texts.items() if text and field != "source"}
    command = words(texts.pop("command", ""))
    own: dict[str, Any] = {
        field: texts.pop(field) for field in ("code_of", "min", "max", "priority") if field in texts
    }
    search = {
        **texts,
        "parameters": views.parameters(given.rows),
        "job": {**own, **fields, "command": command},
    }
    submitted: SubmittedSearch = parsed(SubmittedSearch, search)
    return submitted
