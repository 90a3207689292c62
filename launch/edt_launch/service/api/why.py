"""`/api/v1/jobs/{id}/why`: why a job has its size."""

from typing import Any

from fastapi import APIRouter

from edt_launch.service import explanation
from edt_launch.service.api import schemas
from edt_launch.service.api.context import Here, User

router = APIRouter(tags=["jobs"])


@router.get("/jobs/{job_id}/why", response_model=schemas.Why)
def why(here: Here, user: User, job_id: str) -> Any:
    """Why a job has its size: its share down the tree, what binds, and what would change it."""
    return explanation.explain(here.job(job_id))
