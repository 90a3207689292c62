"""Starting a search in a form."""

import shlex
from typing import Annotated, Any

from fastapi import APIRouter, Depends, File, Form, Query, Request, Response, UploadFile
from fastapi.responses import RedirectResponse
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from edt_launch.service import searches
from edt_launch.service.api import problems
from edt_launch.service.api.dependencies import SUBJECT, ContextDep, CurrentUser
from edt_launch.service.context import Context
from edt_launch.service.database.account_records import UserRecord
from edt_launch.service.database.search_records import SearchRecord
from edt_launch.service.errors import ConflictError, ForbiddenError, InvalidError
from edt_launch.service.search_spec import SubmittedSearch
from edt_launch.service.web import templating
from edt_launch.service.web.views import new_search as views

router = APIRouter(prefix="/searches/new")

Value = Annotated[str, Form(max_length=2**16)]
Values = Annotated[list[str] | None, Form(max_length=views.MOST_ROWS)]


class Given:
    """What the form was sent with."""

    def __init__(
        self,
        name: Value = "",
        command: Value = "",
        code_of: Value = "",
        metric: Value = "",
        objective: Value = "minimize",
        algorithm: Value = "random",
        max_trials: Value = "",
        max_parallel: Value = "1",
        max_minutes: Value = "",
        max_budget: Value = "",
        seed: Value = "",
        least: Annotated[str, Form(alias="min", max_length=64)] = "1",
        most: Annotated[str, Form(alias="max", max_length=64)] = "1",
        priority: Value = "0",
        parameter: Values = None,
        kind: Values = None,
        values: Values = None,
        low: Values = None,
        high: Values = None,
        step: Values = None,
    ) -> None:
        texts = {
            "name": name, "command": command, "code_of": code_of, "metric": metric, "objective": objective,
            "algorithm": algorithm, "max_trials": max_trials, "max_parallel": max_parallel,
            "max_minutes": max_minutes, "max_budget": max_budget, "seed": seed, "min": least, "max": most,
            "priority": priority,
        }  # fmt: skip
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
) -> Response:
    """The form, with the command and the files of a job if one is named."""
    given = {}
    if job:
        found = context.job_of(job, user)
        given = {
            "code_of": found.id,
            "command": shlex.join(found.command),
            "min": str(found.min),
            "max": str(found.max),
        }
    return templating.page(request, "new_search.html", view=views.new_search(given))


@router.post("")
async def create(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    given: Annotated[Given, Depends()],
    code: Annotated[UploadFile | None, File()] = None,
) -> Response:
    """Create it, or show the form again with what was wrong."""
    try:
        search = await context.uploads.run(user.name, lambda: _submit(context, user, given, code))
    except (ConflictError, ForbiddenError, InvalidError) as error:
        wrong = f"{error.detail}: {error.next_step}" if error.next_step else error.detail
        view = views.new_search(given.texts, given.rows, wrong)
        return await run_in_threadpool(
            templating.page, request, "new_search.html", status=error.status, view=view
        )
    request.scope[SUBJECT] = search.id
    return RedirectResponse(f"/searches/{search.id}", 303)


def _submit(context: Context, user: UserRecord, given: Given, code: UploadFile | None) -> SearchRecord:
    file = code.file if code is not None and code.filename else None  # without a file, browsers send none
    try:
        spec = SubmittedSearch.model_validate(_spec(given))
    except ValidationError as error:
        raise InvalidError(problems.invalid(error.errors()).detail) from None
    return searches.submit(context, user, spec, file)


def _spec(given: Given) -> dict[str, Any]:
    texts = {field: text for field, text in given.texts.items() if text}
    try:
        command = shlex.split(texts.pop("command", ""))
    except ValueError as error:
        raise InvalidError(f"command: {error}", "close its quotes") from None
    own = {field: texts.pop(field) for field in ("code_of", "min", "max", "priority") if field in texts}
    parameters = {row.name: row.range() for row in given.rows if row.name}
    return {**texts, "parameters": parameters, "job": {**own, "command": command}}
