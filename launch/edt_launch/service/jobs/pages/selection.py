"""Doing something with several jobs at once."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import Query, Request, Response
from pydantic import BaseModel, Field

from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.errors import ConflictError, InvalidError, ServiceError
from edt_launch.service.http.dependencies import ContextDep, CurrentUser
from edt_launch.service.jobs import answers, service
from edt_launch.service.jobs.forecast.forecast import effects
from edt_launch.service.jobs.forecast.losing import loss
from edt_launch.service.jobs.pages.actions import WANTED
from edt_launch.service.jobs.pages.views import selection as views
from edt_launch.service.jobs.pages.views.job import actions
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.specification import MAX_PRIORITY, JobChange
from edt_launch.service.web import templating
from edt_launch.service.web.actions import Action, Asked, routes
from edt_launch.service.web.asking import Question

MAX_SELECTED_JOBS = 100
"""Jobs of a selection: a page of the list."""


class SelectionFields(BaseModel):
    """What is done with which jobs; `force` if the question has said that their work would be lost."""

    action: Literal["stop", "pause", "resume", "priority", "delete"]
    job: list[str] = Field([], max_length=MAX_SELECTED_JOBS)
    priority: str = Field("", max_length=16)
    force: bool = False


def _ask(asked: Asked) -> Question:
    given: SelectionFields = asked.given
    records = _jobs(asked.context, asked.user, given.job)
    able = [one for one in records if _can(one, given.action)]
    if not able:
        done = views.DONE[given.action]
        raise ConflictError(f"nothing that was chosen can be {done}", "choose other jobs")
    lost = [loss(one, asked.context.clock()) for one in able] if given.action == "pause" else []
    return views.question(
        given.action,
        [answers.job(one) for one in able],
        len(records) - len(able),
        _foreseen(asked, able),
        given.priority if asked.is_preview or asked.error else None,
        [*filter(None, lost)],
    )


def _foreseen(asked: Asked, jobs: Sequence[JobRecord]) -> Sequence[Mapping[str, Any]] | None:
    if asked.given.action in WANTED:
        return effects(asked.context, [service.wanting(job, WANTED[asked.given.action]) for job in jobs])
    if asked.given.action == "priority" and asked.is_preview:
        changes = _priority(asked).model_dump(exclude_none=True)
        return effects(asked.context, [replace(job, **changes) for job in jobs])
    return None


def _do(asked: Asked) -> str | Response:
    """Do it with each that it can be done with; what could not be done is told."""
    given: SelectionFields = asked.given
    records = _jobs(asked.context, asked.user, given.job)
    changes = _priority(asked) if given.action == "priority" else JobChange()
    asked.note(f"{given.action} {' '.join(one.id for one in records)}")
    problems_met = []
    for one in records:
        try:
            _do_one(asked, one.id, changes)
        except ServiceError as error:
            problems_met.append(f"{one.id}: {error.detail}")
    if not problems_met:
        return "/jobs"
    done = len(records) - len(problems_met)
    told = f"{done} of {len(records)} jobs were {views.DONE[given.action]}; {'; '.join(problems_met[:5])}"
    partly = ConflictError(told, "look at the list of jobs for how they are now")
    if not done:
        raise partly
    return templating.error(207, "only partly", partly.detail, partly.next_step)


def _do_one(asked: Asked, job: str, changes: JobChange) -> None:
    context, user = asked.context, asked.user
    match asked.given.action:
        case "pause":
            service.pause(context, user, job, force=asked.given.force)
        case "delete":
            asked.carry_out([service.delete(context, user, job)])
        case "priority":
            service.change(context, user, job, changes)
        case action:
            service.set_wanted(context, user, job, WANTED[action])


def _jobs(context: Context, user: UserRecord, ids: Sequence[str]) -> list[JobRecord]:
    if not ids:
        raise InvalidError("no job is chosen", "choose some by the boxes at their left")
    return [context.job_of(job, user) for job in dict.fromkeys(ids)]


def _can(job: JobRecord, action: str) -> bool:
    return ("set" if action == "priority" else action) in actions(answers.job(job))


def _priority(asked: Asked) -> JobChange:
    text = asked.given.priority
    try:
        priority = int(text)
        changes = JobChange(priority=priority)
    except ValueError:
        limits = f"from {-MAX_PRIORITY} to {MAX_PRIORITY}"
        raise InvalidError(f"priority: {text!r} is not possible", f"give a whole number {limits}") from None
    asked.context.submitter.check_priority(asked.user, priority)
    return changes


router = routes([Action("/selected", _ask, _do, SelectionFields)])


@router.get("/selected/logs")
def logs(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    job: Annotated[list[str] | None, Query(max_length=MAX_SELECTED_JOBS)] = None,
) -> Response:
    """Links to what the launchers of the chosen jobs, and their workers, have written."""
    jobs = [answers.job(one) for one in _jobs(context, user, job or ())]
    return templating.page(request, "logs.html", jobs=jobs)
