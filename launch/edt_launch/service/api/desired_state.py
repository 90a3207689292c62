"""`/api/v1/jobs/{id}/stop`, `pause` and `resume`: what is wanted of a job. The loop does it."""

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
    return _wish(here, user, job_id, Wanted.STOP)


@router.post("/jobs/{job_id}/pause", response_model=schemas.Job)
def pause(here: Here, user: User, job_id: str) -> Any:
    """Have a job save its state and give up its devices until it is resumed."""
    return _wish(here, user, job_id, Wanted.PAUSE)


@router.post("/jobs/{job_id}/resume", response_model=schemas.Job)
def resume(here: Here, user: User, job_id: str) -> Any:
    """Have a paused job go on."""
    return _wish(here, user, job_id, Wanted.RUN)


def _wish(here: Context, user: UserRecord, job_id: str, wanted: Wanted) -> Any:
    job = here.job_of(job_id, user)
    wished = here.store.jobs.wish(job.id, wanted)
    if wished.wanted is not wanted or (wished.has_ended and wanted is not Wanted.STOP):
        state = wished.state if wished.has_ended else "stopping"
        raise ConflictError(f"{job.id} is {state}", "submit it again to have it run")
    here.changed()
    return views.job(wished)
