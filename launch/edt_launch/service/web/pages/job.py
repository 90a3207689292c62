"""One job: what it does, and what can be done with it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter, Form, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError

from edt_launch.core.plain_files import NoFileError
from edt_launch.service.api import jobs as rest
from edt_launch.service.api import problems
from edt_launch.service.api import views as answers
from edt_launch.service.api.dependencies import ContextDep, CurrentUser
from edt_launch.service.context import Context, may
from edt_launch.service.database.records import JobRecord, UserRecord
from edt_launch.service.errors import ConflictError, InvalidError
from edt_launch.service.explanation import explain
from edt_launch.service.specification import JobChange
from edt_launch.service.tailing import last_lines
from edt_launch.service.web import templating, wording
from edt_launch.service.web.views.job import (
    LABELS,
    TAIL,
    Written,
    act_view,
    actions,
    happened,
    job_view,
)

router = APIRouter()

MOST_EVENTS = 100
"""Events that are shown."""

REACH = 2**18
"""Bytes at the end of a log, or of the events, that are looked at."""

ACTS: Mapping[str, Callable[[Context, UserRecord, str], Response]] = {
    "stop": rest.stop,
    "pause": rest.pause,
    "resume": rest.resume,
}

Value = Annotated[str, Form(max_length=256)]


@router.get("/jobs/{job_id}")
def show(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    job_id: str,
    rank: Annotated[str, Query(pattern="^[0-9]{0,6}$")] = "",
) -> Response:
    """A job, with the end of its log."""
    job = context.job(job_id)
    written = _written(context, job, int(rank) if rank else None) if may(user, job) else None
    view = job_view(answers.job(job, user), explain(job), written)
    return templating.page(request, "job.html", view=view)


@router.get("/jobs/{job_id}/{action}")
def ask(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    job_id: str,
    action: Literal["stop", "pause", "resume", "set"],
) -> Response:
    """What an action would do, and the button for it."""
    shown = answers.job(context.job_of(job_id, user))
    if action not in actions(shown):
        raise ConflictError(f"{job_id} is {shown['state']}", "look at its page for what can be done")
    return templating.page(request, "act.html", view=act_view(shown, action))


@router.post("/jobs/{job_id}/set")
def change(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    job_id: str,
    least: Annotated[str, Form(alias="min", max_length=256)] = "",
    most: Annotated[str, Form(alias="max", max_length=256)] = "",
    priority: Value = "",
    weight: Value = "",
    name: Value = "",
) -> Response:
    """Change a job, or show the form again with what was wrong."""
    given = dict(zip(LABELS, (least, most, priority, weight, name), strict=True))
    try:
        rest.change(context, user, job_id, _changes(given))
    except InvalidError as error:
        shown = answers.job(context.job_of(job_id, user))
        told = f"{error.detail}: {error.next_step}" if error.next_step else error.detail
        view = act_view(shown, "set", given, told)
        return templating.page(request, "act.html", status=error.status, view=view)
    return RedirectResponse(f"/jobs/{job_id}", 303)


@router.post("/jobs/{job_id}/{action}")
def act(
    context: ContextDep, user: CurrentUser, job_id: str, action: Literal["stop", "pause", "resume"]
) -> Response:
    """Stop, pause or resume a job."""
    ACTS[action](context, user, job_id)
    return RedirectResponse(f"/jobs/{job_id}", 303)


def _changes(given: Mapping[str, str]) -> JobChange:
    values = {name: value.strip() for name, value in given.items()}
    try:
        return JobChange.model_validate({name: value for name, value in values.items() if value})
    except ValidationError as error:
        raise InvalidError(problems.invalid(error.errors()).detail) from None


def _written(context: Context, job: JobRecord, rank: int | None) -> Written:
    folder = context.home.job(job.id)
    path = folder.launcher_log if rank is None else folder.output.rank_log(str(rank))
    log = [wording.plain(line) for line in _last(path, TAIL)]
    return Written(happened(_last(folder.output.events, REACH), MOST_EVENTS), log, rank)


def _last(path: Path, lines: int) -> list[bytes]:
    try:
        return last_lines(path, lines, REACH)
    except (
        FileNotFoundError,
        NotADirectoryError,
        PermissionError,
        NoFileError,
    ):  # the job may do as it likes
        return []
