"""One job: what it does, and what can be done with it."""

from collections.abc import Mapping
from typing import Annotated, Literal

from fastapi import APIRouter, BackgroundTasks, Form, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import Json, ValidationError
from starlette.concurrency import run_in_threadpool

from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context, may
from edt_launch.service.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from edt_launch.service.experiments import runs
from edt_launch.service.http import problems
from edt_launch.service.http.dependencies import SUBJECT, ContextDep, CurrentUser, carry_out
from edt_launch.service.jobs import service
from edt_launch.service.jobs import views as answers
from edt_launch.service.jobs.forecast.forecast import effects
from edt_launch.service.jobs.forecast.losing import loss
from edt_launch.service.jobs.pages import job_tabs
from edt_launch.service.jobs.pages.views.job import (
    LABELS,
    PUBLIC,
    TABS,
    actions,
    conflict,
    job_view,
    question,
    rebased,
)
from edt_launch.service.jobs.specification import JobChange
from edt_launch.service.jobs.states import Wanted
from edt_launch.service.web import templating
from edt_launch.service.web.crumbs import JOBS, SEARCHES, Crumb, project
from edt_launch.service.web.form_fields import Value

router = APIRouter()

WANTED = {"stop": Wanted.STOP, "pause": Wanted.PAUSE, "resume": Wanted.RUN}


@router.get("/jobs/{job_id}")
async def show(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    job_id: str,
    asked: job_tabs.TabQueryDep,
    tab: Literal["", "monitor", "size", "logs", "events", "results", "definition"] = "",
) -> Response:
    """A job, and one of its tabs."""
    job = await run_in_threadpool(context.job, job_id)
    is_own = may(user, job)
    chosen: str = tab or next(name for name in TABS if is_own or name in PUBLIC)
    if not is_own and chosen not in PUBLIC:
        raise ForbiddenError(f"this part of {job.id} is for {job.owner} and administrators", "ask them")
    shown = answers.job(job, user)
    body = await job_tabs.body(context, user, job, shown, chosen, asked)
    crumbs = await run_in_threadpool(_crumbs, context, user, job_id)
    view = job_view(shown, chosen, body, crumbs, is_own=is_own)
    status = InvalidError.status if getattr(body, "error", "") else 200
    return templating.page(request, f"job/{chosen}.html", status=status, view=view)


def _crumbs(context: Context, user: UserRecord, job_id: str) -> list[Crumb]:
    """The experiment whose run the job is, or the search whose trial, if the user may see that."""
    if experiment := runs.experiments_of(context, user, [job_id]).get(job_id):
        names = context.store.projects.names([experiment.project])
        above = project(experiment.project, names.get(experiment.project, experiment.project))
        return [*above, Crumb(f"/experiments/{experiment.id}", experiment.name)]
    search = context.store.searches.of_job(job_id)
    if search is not None and may(user, search):
        return [SEARCHES, Crumb(f"/searches/{search.id}", search.name)]
    return [JOBS]


@router.get("/jobs/{job_id}/series.csv")
async def series(
    context: ContextDep, user: CurrentUser, job_id: str, asked: job_tabs.TabQueryDep
) -> Response:
    """The points of the plots, as comma-separated values."""
    job = await run_in_threadpool(context.job_of, job_id, user)
    text = await context.reads.run(user.name, lambda: job_tabs.csv_of(context, job.id, asked.names))
    headers = {"Content-Disposition": f'attachment; filename="{job.id}.csv"'}
    return Response(text, media_type="text/csv; charset=utf-8", headers=headers)


@router.get("/jobs/{job_id}/{action}")
def ask(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    job_id: str,
    action: str,
) -> Response:
    """What an action would do, and the button for it."""
    job = context.job_of(job_id, user)
    if action not in (*WANTED, "set", "delete"):
        raise NotFoundError(f"a job has no page {action[:64]!r}", "go on from its first page")
    shown = answers.job(job)
    if action not in actions(shown):
        raise ConflictError(f"{job_id} is {shown['state']}", "look at its page for what can be done")
    changes = effects(context, [service.wanting(job, WANTED[action])]) if action in WANTED else None
    lost = loss(job, context.clock()) if action == "pause" else ""
    return templating.page(request, "act.html", view=question(shown, action, changes, lost=lost))


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
    seen: Annotated[Json[dict[str, str]] | None, Form(max_length=2000)] = None,
    foresee: Annotated[bool, Form()] = False,
) -> Response:
    """Change a job, or show the form again with what was wrong, or with what would change.

    `seen` is how the job was when the form was made: what others have changed since is not undone.
    """
    given = dict(zip(LABELS, (least, most, priority, weight, name), strict=True))
    try:
        if others := conflict(answers.job(context.job_of(job_id, user)), seen or {}):
            raise ConflictError(
                f"somebody else was first: {others}", "check your values, and send the form again"
            )
        request.scope[SUBJECT] = " ".join(f"{field}={value}" for field, value in given.items())
        wanted = _changes(given, seen or {})
        if foresee:
            request.scope[SUBJECT] = None
            changes = effects(context, [service.changed(context, user, job_id, wanted)[1]])
            shown = answers.job(context.job_of(job_id, user))
            return templating.page(request, "act.html", view=question(shown, "set", changes, given))
        service.change(context, user, job_id, wanted)
    except (InvalidError, ConflictError) as error:
        shown = answers.job(context.job_of(job_id, user))
        given = rebased(given, seen or {}, shown)
        if "set" not in actions(shown):
            raise
        told = error.message
        view = question(shown, "set", given=given, error=told)
        return templating.page(request, "act.html", status=error.status, view=view)
    return RedirectResponse(f"/jobs/{job_id}", 303)


@router.post("/jobs/{job_id}/delete")
def delete(context: ContextDep, user: CurrentUser, job_id: str, afterwards: BackgroundTasks) -> Response:
    """Delete a job that has ended, with its files."""
    carry_out([service.delete(context, user, job_id)], afterwards)
    return RedirectResponse("/jobs", 303, background=afterwards)


@router.post("/jobs/{job_id}/{action}")
def act(
    context: ContextDep,
    user: CurrentUser,
    job_id: str,
    action: Literal["stop", "pause", "resume"],
    force: Annotated[bool, Form()] = False,
) -> Response:
    """Stop, pause or resume a job; `force` if the question said that its work would be lost."""
    if action == "pause":
        service.pause(context, user, job_id, force=force)
    else:
        service.set_wanted(context, user, job_id, WANTED[action])
    return RedirectResponse(f"/jobs/{job_id}", 303)


def _changes(given: Mapping[str, str], seen: Mapping[str, str]) -> JobChange:
    """The changes; the form has all of the fields that were `seen`, and a name may be taken away."""
    values = {name: value.strip() for name, value in given.items()}
    if empty := [LABELS[name] for name in seen if name in values and name != "name" and not values[name]]:
        raise InvalidError(f"nothing is written for {', '.join(empty)}", "write a number")
    try:
        wanted = {name: value for name, value in values.items() if value or (name == "name" and name in seen)}
        return JobChange.model_validate(wanted)
    except ValidationError as error:
        raise InvalidError(problems.invalid(error.errors()).detail) from None
