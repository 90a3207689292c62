"""`/api/v1/jobs`: submit, show, change, stop, pause, resume, explain, delete."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, BackgroundTasks, File, Form, Header, Query, Response, UploadFile
from pydantic import Json
from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool

from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.http.dependencies import PREVIEWED, ContextDep, CurrentUser, SubjectDep, carry_out
from edt_launch.service.jobs import answers, schemas, service
from edt_launch.service.jobs.forecast.forecast import effects, forecast
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.specification import JobChange, JobSpec
from edt_launch.service.jobs.states import Wanted
from edt_launch.service.jobs.submission import Submission

router = APIRouter(tags=["jobs"])

Key = Annotated[
    str | None,
    Header(
        pattern="^[!-~]{1,128}$",
        description="Any text that is new for each job and the same for each attempt to submit it.",
    ),
]


DryRun = Annotated[bool, Query(description="Only say what it would change.")]

Force = Annotated[
    bool, Query(description="Also where the work of a job that cannot save it is lost by that.")
]

Foreseen = schemas.Job | schemas.Changes
FORESEEN: dict[int | str, dict[str, Any]] = {
    200: {"description": "The job, or with `dry_run` what would change"}
}


@router.post(
    "/jobs",
    status_code=201,
    response_model=schemas.Job,
    responses={
        200: {
            "description": "The job that was submitted with this key before, or what submitting would change",
            "model": schemas.Job | schemas.Forecast,
        }
    },
    dependencies=[PREVIEWED],
)
async def submit(
    context: ContextDep,
    user: CurrentUser,
    subject: SubjectDep,
    spec: Annotated[Json[JobSpec], Form(description="The job, as JSON.")],
    code: Annotated[UploadFile | None, File(description="Its code: tar, tar.gz or zip.")] = None,
    idempotency_key: Key = None,
    dry_run: bool = False,
) -> Response:
    """Queue a job, or say what that would change (`dry_run`)."""
    submission = Submission(user, spec, None if code is None else code.file, idempotency_key)
    if dry_run:
        return await context.uploads.run(user.name, partial(_forecast, context, submission))
    job, is_new = await context.uploads.run(user.name, partial(_submit, context, submission))
    subject(job.id)
    return _json(answers.job(job), 201 if is_new else 200)


def _forecast(context: Context, submission: Submission) -> Response:
    context.submitter.check(submission)
    return _json(forecast(context.store, context.settings, submission, context.clock()))


def _submit(context: Context, submission: Submission) -> tuple[JobRecord, bool]:
    job, is_new = context.submitter.submit(submission, context.clock())
    if is_new:
        context.changed()
    return job, is_new


@router.get("/jobs/{job_id}", response_model=schemas.Job)
def show(context: ContextDep, user: CurrentUser, job_id: str) -> Response:
    """A job."""
    return _json(answers.job(context.job(job_id), user))


@router.patch("/jobs/{job_id}", response_model=Foreseen, responses=FORESEEN, dependencies=[PREVIEWED])
def change(
    context: ContextDep, user: CurrentUser, job_id: str, changes: JobChange, dry_run: DryRun = False
) -> Response:
    """Change a live job's bounds, priority, weight or time limit; at any time its name, tags or comment."""
    if dry_run:
        return _json({"changes": effects(context, [service.changed(context, user, job_id, changes)[1]])})
    return _json(answers.job(service.change(context, user, job_id, changes)))


@router.delete("/jobs/{job_id}", status_code=204, response_class=Response)
def delete(context: ContextDep, user: CurrentUser, job_id: str, afterwards: BackgroundTasks) -> None:
    """Forget a job that has ended, and delete its files."""
    carry_out([service.delete(context, user, job_id)], afterwards)


@router.post("/jobs/{job_id}/stop", response_model=Foreseen, responses=FORESEEN, dependencies=[PREVIEWED])
def stop(context: ContextDep, user: CurrentUser, job_id: str, dry_run: DryRun = False) -> Response:
    """End a job for good; one that has ended stays as it is."""
    return _set_wanted(context, user, job_id, Wanted.STOP, dry_run)


@router.post("/jobs/{job_id}/pause", response_model=Foreseen, responses=FORESEEN, dependencies=[PREVIEWED])
def pause(
    context: ContextDep, user: CurrentUser, job_id: str, dry_run: DryRun = False, force: Force = False
) -> Response:
    """Have a job save its state and give up its devices until it is resumed."""
    if dry_run:
        return _set_wanted(context, user, job_id, Wanted.PAUSE, dry_run)
    return _json(answers.job(service.pause(context, user, job_id, force=force)))


@router.post("/jobs/{job_id}/resume", response_model=Foreseen, responses=FORESEEN, dependencies=[PREVIEWED])
def resume(context: ContextDep, user: CurrentUser, job_id: str, dry_run: DryRun = False) -> Response:
    """Have a paused job go on."""
    return _set_wanted(context, user, job_id, Wanted.RUN, dry_run)


@router.get("/jobs/{job_id}/why", response_model=schemas.Why)
async def why(context: ContextDep, user: CurrentUser, job_id: str) -> Any:
    """Why a job has its size, what would change it; and when it is going to start, if it waits."""
    job = await run_in_threadpool(context.job, job_id)
    return await service.explained(context, user, job)


def _set_wanted(context: Context, user: UserRecord, job_id: str, wanted: Wanted, dry_run: bool) -> Response:
    if dry_run:
        job = context.job_of(job_id, user)
        return _json({"changes": effects(context, [service.wanting(job, wanted)])})
    return _json(answers.job(service.set_wanted(context, user, job_id, wanted)))


def _json(content: object, status: int = 200) -> Response:
    """A response whose content is not checked again: that takes long for lists."""
    return Response(to_json(content), status_code=status, media_type="application/json")
