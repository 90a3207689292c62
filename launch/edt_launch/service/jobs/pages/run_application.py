"""Running an application: a job whose code is sent, or is that of another job."""

import secrets
from datetime import UTC
from typing import Annotated, Any, BinaryIO

from fastapi import APIRouter, File, Form, Request, Response, UploadFile
from fastapi.responses import RedirectResponse

from edt_launch.core.written import WrittenError, indices, start_time, time_limit
from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.errors import InvalidError
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
    time: Value = "",
    begin: Value = "",
    after: Value = "",
    array: Value = "",
    grace: Value = "",
    restartable: Value = "",
    no_preempt: Value = "",
    key: FormKey = "",
) -> Response:
    """Submit it, or show the form again with what was wrong."""
    given = {
        "name": name, "command": command, "path": path, "code_of": code_of, "min": least, "max": most,
        "priority": priority, "time": time, "begin": begin, "after": after, "array": array, "grace": grace,
        "restartable": restartable, "no_preempt": no_preempt,
    }  # fmt: skip
    given = {field: value.strip() for field, value in given.items()}
    try:
        jobs = await context.uploads.run(user.name, lambda: _submit(context, user, given, code, key))
    except WRONG as error:
        wrong = error.message
        view = run_view(new_key(), given, wrong, is_admin=user.is_admin)
        return templating.page(request, "console/run.html", status=error.status, view=view)
    request.scope[SUBJECT] = " ".join(job.id for job in jobs)
    return RedirectResponse(f"/jobs/{jobs[0].id}" if len(jobs) == 1 else "/jobs", 303)


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
) -> list[JobRecord]:
    """Submit the job, or those of its array; the first one brings the code that the others copy."""
    values: dict[str, Any] = {field: value for field, value in given.items() if value}
    now = context.clock()
    try:
        wanted = indices("Array", array) if (array := values.pop("array", "")) else None
        if limit := values.pop("time", ""):
            values["time_limit"] = time_limit("Time limit", limit)
        if "begin" in values:
            values["begin"] = start_time("Start not before", values["begin"], now, UTC)
    except WrittenError as error:
        raise InvalidError(*error.args) from None
    values["after"] = values.get("after", "").replace(",", " ").split()
    values["preemptible"] = not values.pop("no_preempt", "")
    values["command"] = words(values.get("command", ""))
    sent = chosen(code)
    file = None if sent is None else sent.file
    if wanted is None:
        return [_one(context, user, values, file, key)]
    values |= {"array_id": secrets.token_hex(8), "array_limit": wanted.limit}
    first, *others = wanted.numbers
    jobs = [_one(context, user, values | {"array_index": first}, file, key)]
    copied = {"path": None, "code_of": jobs[0].id}
    return jobs + [_one(context, user, values | copied | {"array_index": one}, None, "") for one in others]


def _one(
    context: Context, user: UserRecord, values: dict[str, Any], file: BinaryIO | None, key: str
) -> JobRecord:
    spec = parsed(JobSpec, values)
    job, _ = context.submitter.submit(Submission(user, spec, file, key or None), context.clock())
    context.changed()
    return job
