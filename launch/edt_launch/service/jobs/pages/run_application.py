"""Running an application: a job whose code is sent, or is that of another job."""

import secrets
from datetime import UTC
from typing import Annotated, Any, BinaryIO

from fastapi import Form, Request, Response
from pydantic import create_model

from edt_launch.core.text.written import WrittenError, indices, start_time, time_limit
from edt_launch.service.errors import InvalidError
from edt_launch.service.http.dependencies import SUBJECT, ContextDep, CurrentUser
from edt_launch.service.jobs.pages import preview as starting
from edt_launch.service.jobs.pages.views.run_application import FIRST, TEXTS, RunView, run_view
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.service import suggested
from edt_launch.service.jobs.specification import JobSpec
from edt_launch.service.jobs.submission import Submission
from edt_launch.service.web import templating
from edt_launch.service.web.actions import Action, Asked, routes
from edt_launch.service.web.form_fields import CodeField, KeyField, Text, Value, new_key, parsed, words


class _Base(KeyField, CodeField):
    @property
    def values(self) -> dict[str, str]:
        """What is written."""
        return {name: getattr(self, name).strip() for name in TEXTS}


_fields: dict[str, Any] = dict.fromkeys(TEXTS, (Text, ""))
RunFields = create_model("RunFields", __base__=_Base, **_fields)


def _ask(asked: Asked) -> RunView:
    given = FIRST if asked.error is None else asked.given.values
    jobs = suggested(asked.context, asked.user)
    return run_view(new_key(), given, jobs, is_admin=asked.user.is_admin)


def _run(asked: Asked) -> str:
    jobs = _submit(asked)
    asked.note(" ".join(job.id for job in jobs))
    return f"/jobs/{jobs[0].id}" if len(jobs) == 1 else "/jobs"


router = routes([Action("/console/run", _ask, _run, RunFields, starts_jobs=True, template="new_job.html")])


@router.post("/console/run/preview")
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


def _submit(asked: Asked) -> list[JobRecord]:
    """Submit the job, or those of its array; the first one brings the code that the others copy."""
    values: dict[str, Any] = {field: value for field, value in asked.given.values.items() if value}
    now = asked.context.clock()
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
    file, _ = asked.given.archive
    if wanted is None:
        return [_one(asked, values, file, asked.given.key)]
    values |= {"array_id": secrets.token_hex(8), "array_limit": wanted.limit}
    first, *others = wanted.numbers
    jobs = [_one(asked, values | {"array_index": first}, file, asked.given.key)]
    copied = {"path": None, "code_of": jobs[0].id}
    return jobs + [_one(asked, values | copied | {"array_index": one}, None, "") for one in others]


def _one(asked: Asked, values: dict[str, Any], file: BinaryIO | None, key: str) -> JobRecord:
    submission = Submission(asked.user, parsed(JobSpec, values), file, key or None)
    job, _ = asked.context.submitter.submit(submission, asked.context.clock())
    asked.context.changed()
    return job
