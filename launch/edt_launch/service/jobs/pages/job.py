"""One job: what it does, and what can be done with it."""

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context, may
from edt_launch.service.errors import ForbiddenError, InvalidError
from edt_launch.service.experiments import runs
from edt_launch.service.http.dependencies import ContextDep, CurrentUser
from edt_launch.service.jobs import answers
from edt_launch.service.jobs.pages import job_tabs
from edt_launch.service.jobs.pages.views.job import PUBLIC, TABS, job_view
from edt_launch.service.web import templating
from edt_launch.service.web.crumbs import EXPERIMENTS, JOBS, Crumb, project

router = APIRouter()


@router.get("/jobs/{job_id}")
async def show(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    job_id: str,
    asked: job_tabs.TabQueryDep,
) -> Response:
    """A job, and one of its tabs."""
    job = await run_in_threadpool(context.job, job_id)
    is_own = may(user, job)
    chosen: str = asked.tab or next(name for name in TABS if is_own or name in PUBLIC)
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
    experiment = runs.experiments_of(context, user, [job_id]).get(job_id)
    if experiment is None:
        return [JOBS]
    above, id_ = [EXPERIMENTS], experiment.project
    if id_ is not None:
        above = project(id_, context.store.projects.names([id_]).get(id_, id_))
    return [*above, Crumb(f"/experiments/{experiment.id}", experiment.name)]


@router.get("/jobs/{job_id}/series.csv")
async def series(
    context: ContextDep, user: CurrentUser, job_id: str, asked: job_tabs.TabQueryDep
) -> Response:
    """The points of the plots, as comma-separated values."""
    job = await run_in_threadpool(context.job_of, job_id, user)
    text = await context.reads.run(user.name, lambda: job_tabs.csv_of(context, job.id, asked.name))
    headers = {"Content-Disposition": f'attachment; filename="{job.id}.csv"'}
    return Response(text, media_type="text/csv; charset=utf-8", headers=headers)
