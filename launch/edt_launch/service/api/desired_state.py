"""`/api/v1/jobs/{id}/stop`, `pause` and `resume`: the desired state of a job, which the loop brings about."""

from typing import Any

from fastapi import APIRouter

from edt_launch.service.api import schemas, views
from edt_launch.service.api.context import Context, Here, User
from edt_launch.service.database.records import UserRecord
from edt_launch.service.errors import ConflictError
from edt_launch.service.states import Wanted

router = APIRouter(tags=["jobs"])


@router.post("/jobs/{job_id}/stop", response_model=schemas.Job)
def stop(here: Here, user: User, job_id: str) -> Any:
    """End a job for good; one that has ended stays as it is."""
    return _set(here, user, job_id, Wanted.STOP)


@router.post("/jobs/{job_id}/pause", response_model=schemas.Job)
def pause(here: Here, user: User, job_id: str) -> Any:
    """Have a job save its state and give up its devices until it is resumed."""
    return _set(here, user, job_id, Wanted.PAUSE)


@router.post("/jobs/{job_id}/resume", response_model=schemas.Job)
def resume(here: Here, user: User, job_id: str) -> Any:
    """Have a paused job go on."""
    return _set(here, user, job_id, Wanted.RUN)


def _set(here: Context, user: UserRecord, job_id: str, wanted: Wanted) -> Any:
    job = here.job_of(job_id, user)
    job = here.store.jobs.wish(job.id, wanted)
    if job.wanted is not wanted or (job.has_ended and wanted is not Wanted.STOP):
        state = job.state if job.has_ended else "stopping"
        raise ConflictError(f"{job.id} is {state}", "submit it again to have it run")
    here.changed()
    return views.job(job)
