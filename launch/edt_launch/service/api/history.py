"""`/api/v1/allocations`: who was given which devices when."""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from edt_launch.service.api import schemas, views
from edt_launch.service.api.context import Here, User
from edt_launch.service.home import JOB_ID

router = APIRouter(tags=["cluster"])


@router.get("/allocations", response_model=schemas.Allocations)
def allocations(
    here: Here,
    user: User,
    job: Annotated[str | None, Query(pattern=f"^{JOB_ID}$", description="Only this job's.")] = None,
    since: Annotated[float | None, Query(ge=0, le=1e12, description="Only from this time on.")] = None,
    limit: Annotated[int, Query(ge=1, le=10_000, description="The newest of them.")] = 1000,
) -> Any:
    """Changes of what jobs have, oldest first."""
    return {"allocations": [views.allocation(one) for one in here.store.history.newest(job, since, limit)]}
