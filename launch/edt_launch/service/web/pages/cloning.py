"""Starting a job like another one, with what is to be different."""

import shlex
from typing import Annotated

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from edt_launch.service.api import problems
from edt_launch.service.api import views as answers
from edt_launch.service.api.dependencies import ContextDep, CurrentUser
from edt_launch.service.context import Context
from edt_launch.service.database.records import JobRecord, UserRecord
from edt_launch.service.errors import InvalidError
from edt_launch.service.submission import Submission, like
from edt_launch.service.web import templating
from edt_launch.service.web.views.job import CLONED, clone_question

router = APIRouter()

Value = Annotated[str, Form(max_length=2**16)]


@router.get("/jobs/{job_id}/clone")
def ask(request: Request, context: ContextDep, user: CurrentUser, job_id: str) -> Response:
    """The form, with the values of the job."""
    shown = answers.job(context.job_of(job_id, user))
    return templating.page(request, "act.html", view=clone_question(shown))


@router.post("/jobs/{job_id}/clone")
async def clone(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    job_id: str,
    name: Value = "",
    command: Value = "",
    least: Annotated[str, Form(alias="min", max_length=256)] = "",
    most: Annotated[str, Form(alias="max", max_length=256)] = "",
    priority: Value = "",
    weight: Value = "",
) -> Response:
    """Submit it, or show the form again with what was wrong."""
    given = dict(zip(CLONED, (name, command, least, most, priority, weight), strict=True))
    try:
        new = await context.uploads.run(user.name, lambda: _submit(context, user, job_id, given))
    except InvalidError as error:
        shown = answers.job(await run_in_threadpool(context.job_of, job_id, user))
        wrong = f"{error.detail}: {error.next_step}" if error.next_step else error.detail
        view = clone_question(shown, given, wrong)
        return templating.page(request, "act.html", status=error.status, view=view)
    return RedirectResponse(f"/jobs/{new.id}", 303)


def _submit(context: Context, user: UserRecord, job_id: str, given: dict[str, str]) -> JobRecord:
    job = context.job_of(job_id, user)
    values = {name: value.strip() for name, value in given.items() if name == "name" or value.strip()}
    try:
        words = shlex.split(values.pop("command", ""))
        spec = like(job, **values, command=words)
    except ValidationError as error:
        raise InvalidError(problems.invalid(error.errors()).detail) from None
    except ValueError as error:
        raise InvalidError(f"command: {error}", "close its quotes") from None
    new, _ = context.submitter.submit(Submission(user, spec), context.clock())
    context.changed()
    return new
