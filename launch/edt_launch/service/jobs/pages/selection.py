"""Doing something with several jobs at once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, BackgroundTasks, Form, Query, Request, Response
from fastapi.responses import RedirectResponse

from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.errors import ConflictError, ForbiddenError, InvalidError, ServiceError
from edt_launch.service.http.dependencies import SUBJECT, ContextDep, CurrentUser, carry_out
from edt_launch.service.jobs import service
from edt_launch.service.jobs import views as answers
from edt_launch.service.jobs.forecast.forecast import effects
from edt_launch.service.jobs.forecast.losing import loss
from edt_launch.service.jobs.pages.views import selection as views
from edt_launch.service.jobs.pages.views.job import actions
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.specification import MAX_PRIORITY, JobChange
from edt_launch.service.jobs.states import Wanted
from edt_launch.service.web import templating
from edt_launch.service.web.asking import Question

router = APIRouter()

MAX_SELECTED_JOBS = 100
"""Jobs of a selection: a page of the list."""

Action = Literal["stop", "pause", "resume", "priority", "delete"]

Back = Literal["/jobs"]
"""The list that jobs are chosen in."""

WANTED = {"stop": Wanted.STOP, "pause": Wanted.PAUSE, "resume": Wanted.RUN}


@router.get("/selected")
def ask(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    action: Action,
    job: Annotated[list[str] | None, Query(max_length=MAX_SELECTED_JOBS)] = None,
    back: Back = "/jobs",
) -> Response:
    """What an action would do to the chosen jobs, and the button for it."""
    view = _question(context, _jobs(context, user, job or ()), action, back)
    return templating.page(request, "act.html", view=view)


@router.get("/selected/logs")
def logs(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    job: Annotated[list[str] | None, Query(max_length=MAX_SELECTED_JOBS)] = None,
    back: Back = "/jobs",
) -> Response:
    """Links to what the launchers of the chosen jobs, and their workers, have written."""
    view = views.driver_logs([answers.job(one) for one in _jobs(context, user, job or ())], back)
    return templating.page(request, "console/logs.html", view=view)


@router.post("/selected")
def act(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    afterwards: BackgroundTasks,
    action: Annotated[Action, Form()],
    job: Annotated[list[str] | None, Form(max_length=MAX_SELECTED_JOBS)] = None,
    priority: Annotated[str, Form(max_length=16)] = "",
    back: Annotated[Back, Form()] = "/jobs",
    foresee: Annotated[bool, Form()] = False,
    force: Annotated[bool, Form()] = False,
) -> Response:
    """Do it, and go back to the list, or only say what would change; what could not be done is told."""
    records = _jobs(context, user, job or ())
    try:
        changes = _priority(context, user, priority) if action == "priority" else JobChange()
    except (InvalidError, ForbiddenError) as error:
        view = _question(context, records, action, back, priority).refused(error.message)
        return templating.page(request, "act.html", status=error.status, view=view)
    if foresee:
        request.scope[SUBJECT] = None
        view = _question(context, records, action, back, priority, changes)
        return templating.page(request, "act.html", view=view)
    request.scope[SUBJECT] = f"{action} {' '.join(one.id for one in records)}"
    problems_met = []
    for one in records:
        try:
            _acts(context, user, afterwards, changes, force=force)[action](one.id)
        except ServiceError as error:
            problems_met.append(f"{one.id}: {error.detail}")
    if problems_met:
        done = len(records) - len(problems_met)
        told = f"{done} of {len(records)} jobs were {views.DONE[action]}; {'; '.join(problems_met[:5])}"
        partly = ConflictError(told, "look at the list of jobs for how they are now")
        if not done:
            raise partly
        answer = templating.error(207, "only partly", partly.detail, partly.next_step)
        answer.background = afterwards  # what was done is carried out to its end, and audited
        return answer
    return RedirectResponse(back, 303, background=afterwards)


def _acts(
    context: Context, user: UserRecord, afterwards: BackgroundTasks, changes: JobChange, *, force: bool
) -> Mapping[str, Callable[[str], object]]:
    return {
        "stop": lambda job: service.set_wanted(context, user, job, Wanted.STOP),
        "pause": lambda job: service.pause(context, user, job, force=force),
        "resume": lambda job: service.set_wanted(context, user, job, Wanted.RUN),
        "delete": lambda job: carry_out([service.delete(context, user, job)], afterwards),
        "priority": lambda job: service.change(context, user, job, changes),
    }


def _jobs(context: Context, user: UserRecord, ids: Sequence[str]) -> list[JobRecord]:
    if not ids:
        raise InvalidError("no job is chosen", "choose some by the boxes at their left")
    return [context.job_of(job, user) for job in dict.fromkeys(ids)]


def _can(job: JobRecord, action: Action) -> bool:
    return ("set" if action == "priority" else action) in actions(answers.job(job))


def _question(
    context: Context,
    records: Sequence[JobRecord],
    action: Action,
    back: str,
    priority: str | None = None,
    changes: JobChange | None = None,
) -> Question:
    able = [one for one in records if _can(one, action)]
    if not able:
        raise ConflictError(f"nothing that was chosen can be {views.DONE[action]}", "choose other jobs")
    foreseen = _foreseen(context, able, action, changes)
    shown = [answers.job(one) for one in able]
    lost = [loss(one, context.clock()) for one in able] if action == "pause" else []
    return views.question(
        action, shown, len(records) - len(able), foreseen, back, priority, [*filter(None, lost)]
    )


def _foreseen(
    context: Context, jobs: Sequence[JobRecord], action: Action, changes: JobChange | None
) -> Sequence[Mapping[str, Any]] | None:
    if action in WANTED:
        changed = [service.wanting(job, WANTED[action]) for job in jobs]
    elif changes is not None and changes.priority is not None:
        changed = [replace(job, priority=changes.priority) for job in jobs]
    else:
        return None
    return effects(context, changed)


def _priority(context: Context, user: UserRecord, text: str) -> JobChange:
    try:
        priority = int(text)
        changes = JobChange(priority=priority)
    except ValueError:
        limits = f"from {-MAX_PRIORITY} to {MAX_PRIORITY}"
        raise InvalidError(f"priority: {text!r} is not possible", f"give a whole number {limits}") from None
    context.submitter.check_priority(user, priority)
    return changes
