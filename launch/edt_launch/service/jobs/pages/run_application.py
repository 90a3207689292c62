"""Running an application: a job whose code is sent, or is that of another job."""

from typing import Annotated

from fastapi import APIRouter, File, Form, Request, Response, UploadFile
from fastapi.responses import RedirectResponse

from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.http.dependencies import SUBJECT, ContextDep, CurrentUser
from edt_launch.service.jobs.pages import preview as starting
from edt_launch.service.jobs.pages.views.run_application import run_view
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.specification import JobSpec
from edt_launch.service.jobs.submission import Submission
from edt_launch.service.web import templating
from edt_launch.service.web.form_fields import WRONG, FormKey, Value, chosen, new_key, parsed, words

router = APIRouter(prefix="/console/run")

Code = Annotated[UploadFile | None, File()]


@router.get("")
def ask(request: Request, user: CurrentUser) -> Response:
    """The form."""
    return templating.page(request, "console/run.html", view=run_view(new_key(), is_admin=user.is_admin))


@router.post("")
async def run(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    code: Code = None,
    name: Value = "",
    command: Value = "",
    path: Value = "",
    code_of: Value = "",
    least: Annotated[str, Form(alias="min", max_length=256)] = "",
    most: Annotated[str, Form(alias="max", max_length=256)] = "",
    priority: Value = "",
    key: FormKey = "",
) -> Response:
    """Submit it, or show the form again with what was wrong."""
    given = {
        "name": name, "command": command, "path": path, "code_of": code_of, "min": least, "max": most,
        "priority": priority,
    }  # fmt: skip
    given = {field: value.strip() for field, value in given.items()}
    try:
        job = await context.uploads.run(user.name, lambda: _submit(context, user, given, code, key))
    except WRONG as error:
        wrong = error.message
        view = run_view(new_key(), given, wrong, is_admin=user.is_admin)
        return templating.page(request, "console/run.html", status=error.status, view=view)
    request.scope[SUBJECT] = job.id
    return RedirectResponse(f"/jobs/{job.id}", 303)


@router.post("/preview")
def preview(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    name: Value = "",
    least: Annotated[str, Form(alias="min", max_length=256)] = "",
    most: Annotated[str, Form(alias="max", max_length=256)] = "",
    priority: Value = "",
) -> Response:
    """What starting it would change, as lines."""
    request.scope[SUBJECT] = None
    given = {"name": name, "min": least, "max": most, "priority": priority}
    stripped = {field: value.strip() for field, value in given.items()}
    return templating.page(request, "preview.html", lines=starting.lines(context, user, **stripped))


def _submit(
    context: Context, user: UserRecord, given: dict[str, str], code: UploadFile | None, key: str
) -> JobRecord:
    values = {field: value for field, value in given.items() if value}
    command = words(values.pop("command", ""))
    spec = parsed(JobSpec, {**values, "command": command})
    sent = chosen(code)
    file = None if sent is None else sent.file
    job, _ = context.submitter.submit(Submission(user, spec, file, key or None), context.clock())
    context.changed()
    return job
