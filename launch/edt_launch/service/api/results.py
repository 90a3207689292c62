"""`/api/v1/jobs/{id}/results` and `checkpoints`: what a job has made, as streams."""

import heapq
import os
import re
from itertools import islice
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from fastapi.responses import StreamingResponse

from edt_launch.launcher.checkpoints import NAME
from edt_launch.service.api import schemas
from edt_launch.service.api.context import Here, User
from edt_launch.service.errors import NotFoundError
from edt_launch.service.packing import pack

router = APIRouter(tags=["jobs"])

GZIP = "application/gzip"
MOST_CHECKPOINTS = 1000
"""Checkpoints that are listed: the newest."""
MOST_SUMMED = 10_000
"""Files of a checkpoint whose sizes are added up."""
ARCHIVE: dict[int | str, dict[str, Any]] = {200: {"description": "A tar.gz", "content": {GZIP: {}}}}


@router.get("/jobs/{job_id}/results", response_class=StreamingResponse, responses=ARCHIVE)
def results(here: Here, user: User, job_id: str) -> StreamingResponse:
    """A job's `model/` and `log/`, as a tar.gz; what is there by now while it runs."""
    job = here.job_of(job_id, user)
    folder = here.home.job(job.id)
    return _archive(f"{job.id}-results", [("model", folder.model), ("log", folder.output.log)])


@router.get("/jobs/{job_id}/checkpoints", response_model=schemas.Checkpoints)
def checkpoints(here: Here, user: User, job_id: str) -> Any:
    """A job's newest 1,000 checkpoints, oldest first. Whether one is whole is found out when it is loaded."""
    job = here.job_of(job_id, user)
    folder = here.home.job(job.id).output.checkpoint
    try:
        with os.scandir(folder) as entries:
            names = (entry.name for entry in entries if NAME.fullmatch(entry.name))
            found = heapq.nlargest(MOST_CHECKPOINTS, names, key=_step)
    except OSError:  # it is not there yet, or the job has spoilt it
        found = []
    shown = [_checkpoint(folder / name, job.id) for name in reversed(found)]
    return {"checkpoints": [one for one in shown if one is not None]}


@router.get("/jobs/{job_id}/checkpoints/{name}", response_class=StreamingResponse, responses=ARCHIVE)
def checkpoint(here: Here, user: User, job_id: str, name: str) -> StreamingResponse:
    """A checkpoint, as a tar.gz."""
    job = here.job_of(job_id, user)
    folder = here.home.job(job.id).output.checkpoint / name if NAME.fullmatch(name) else None
    if folder is None or folder.is_symlink() or not folder.is_dir():
        raise NotFoundError(
            f"{job.id} has no checkpoint {name[:80]!r}", f"GET /api/v1/jobs/{job.id}/checkpoints lists them"
        )
    return _archive(f"{job.id}-{name}", [(name, folder)])


def _archive(name: str, folders: list[tuple[str, Path]]) -> StreamingResponse:
    headers = {"Content-Disposition": f'attachment; filename="{name}.tar.gz"'}
    return StreamingResponse(pack(folders), media_type=GZIP, headers=headers)


def _step(name: str) -> int:
    return int(re.sub(r"\D", "", name))


def _checkpoint(path: Path, job_id: str) -> dict[str, Any] | None:
    """What is known of a checkpoint; None if it has just been deleted."""
    try:
        with os.scandir(path) as entries:
            size = sum(entry.stat(follow_symlinks=False).st_size for entry in islice(entries, MOST_SUMMED))
        time = path.stat().st_mtime
    except OSError:
        return None
    url = f"/api/v1/jobs/{job_id}/checkpoints/{path.name}"
    return {"name": path.name, "step": _step(path.name), "size": size, "time": time, "url": url}
