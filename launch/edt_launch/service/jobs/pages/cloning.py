"""Starting a job like another one, with what is to be different."""

from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.errors import InvalidError
from edt_launch.service.http import problems
from edt_launch.service.http.dependencies import SUBJECT, ContextDep, CurrentUser
from edt_launch.service.jobs import views as answers
from edt_launch.service.jobs.forecast.forecast import forecast
from edt_launch.service.jobs.pages.views.job import CLONED, clone_question
from edt_launch.service.jobs.submission import Submission, like
from edt_launch.service.web import templating
from edt_launch.service.web.form_fields import Value, words

router = APIRouter()

Json = dict[str, Any]


@router.get("/jobs/{job_id}/clone")
def ask(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    job_id: str,
    checkpoint: Annotated[str, Query(max_length=32)] = "",
) -> Response:
    """The form, with the values of the job; with `checkpoint`, of one that goes on from there."""
    shown = answers.job(context.job_of(job_id, user))
    return templating.page(request, "act.html", view=clone_question(shown, checkpoint=checkpoint))


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
    checkpoint: Annotated[str, Form(max_length=32)] = "",
    foresee: Annotated[bool, Form()] = False,
) -> Response:
    """Submit it, or show the form again with what was wrong, or with what would change."""
    given = dict(zip(CLONED, (name, command, least, most, priority, weight), strict=True))
    act = _foresee if foresee else _submit
    try:
        done = await context.uploads.run(user.name, lambda: act(context, user, job_id, given, checkpoint))
    except InvalidError as error:
        shown = answers.job(await run_in_threadpool(context.job_of, job_id, user))
        wrong = error.message
        view = clone_question(shown, given, wrong, checkpoint=checkpoint)
        return templating.page(request, "act.html", status=error.status, view=view)
    if foresee:
        request.scope[SUBJECT] = None
        shown = answers.job(await run_in_threadpool(context.job_of, job_id, user))
        view = clone_question(shown, given, forecast=done, checkpoint=checkpoint)
        return templating.page(request, "act.html", view=view)
    return RedirectResponse(f"/jobs/{done['id']}", 303)


def _submit(context: Context, user: UserRecord, job_id: str, given: dict[str, str], checkpoint: str) -> Json:
    new, _ = context.submitter.submit(_submission(context, user, job_id, given, checkpoint), context.clock())
    context.changed()
    return answers.job(new)


def _foresee(context: Context, user: UserRecord, job_id: str, given: dict[str, str], checkpoint: str) -> Json:
    submission = _submission(context, user, job_id, given, checkpoint)
    context.submitter.check(submission)
    return forecast(context.store, context.settings, submission, context.clock())


def _submission(
    context: Context, user: UserRecord, job_id: str, given: dict[str, str], checkpoint: str
) -> Submission:
    job = context.job_of(job_id, user)
    values = {name: value.strip() for name, value in given.items() if name == "name" or value.strip()}
    command = words(values.pop("command", ""))
    try:
        spec = like(job, **values, command=command, checkpoint=checkpoint or None)
    except ValidationError as error:
        raise InvalidError(problems.invalid(error.errors()).detail) from None
    return Submission(user, spec)
