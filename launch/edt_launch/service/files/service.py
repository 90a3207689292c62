"""What a job has written besides its logs."""

import contextlib
import heapq
import os
import re
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from pydantic import StringConstraints

from edt_launch.launcher.hosts.checkpoints import NAME
from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.errors import NotFoundError
from edt_launch.service.files import checkpoints as checkpoint_files
from edt_launch.service.files import results as made
from edt_launch.service.files.checkpoints import Wholeness
from edt_launch.service.names import TEXT

MAX_CHECKPOINTS = 1000
"""Checkpoints that are listed: the newest."""


MAX_FILES = 10_000
"""Files that are listed."""


MAX_SUMMED = 10_000
"""Files of a checkpoint whose sizes are added up."""


MAX_VALUES = 16
"""Values whose courses are given at a time."""


ValueName = Annotated[str, StringConstraints(max_length=256, pattern=f"^{TEXT}$")]


def checked(context: Context, user: UserRecord, job_id: str, name: str) -> Wholeness:
    """Whether a checkpoint of a job is whole."""
    return checkpoint_files.thorough_look(checkpoint_folder(context, user, job_id, name))


def list_files(context: Context, user: UserRecord, job_id: str) -> dict[str, Any]:
    """What a job has made, like `output_schemas.Files`."""
    job = context.job_of(job_id, user)
    found = list(islice(made.listed(made.members(context.home.job(job.id))), MAX_FILES + 1))
    return {
        "files": [one._asdict() for one in found[:MAX_FILES]],
        "complete": len(found) <= MAX_FILES,
    }


def list_checkpoints(context: Context, user: UserRecord, job_id: str) -> dict[str, list[dict[str, Any]]]:
    """A job's checkpoints, like `output_schemas.Checkpoints`."""
    job = context.job_of(job_id, user)
    folder = context.home.job(job.id).output.checkpoint
    newest: list[str] = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:  # absent, or the job has spoilt it
        names = (entry.name for entry in entries if NAME.fullmatch(entry.name))
        newest = heapq.nlargest(MAX_CHECKPOINTS, names, key=_step)
    shown = [_checkpoint(folder / name, job.id) for name in reversed(newest)]
    return {"checkpoints": [one for one in shown if one is not None]}


def checkpoint_folder(context: Context, user: UserRecord, job_id: str, name: str) -> Path:
    """Where a checkpoint of a job lies; raises `NotFoundError` if there is none of that name."""
    job = context.job_of(job_id, user)
    folder = context.home.job(job.id).output.checkpoint / name if NAME.fullmatch(name) else None
    if folder is None or folder.is_symlink() or not folder.is_dir():
        raise NotFoundError(
            f"{job.id} has no checkpoint {name[:80]!r}", f"GET /api/v1/jobs/{job.id}/checkpoints lists them"
        )
    return folder


def _step(name: str) -> int:
    return int(re.sub(r"\D", "", name))


def _checkpoint(path: Path, job_id: str) -> dict[str, Any] | None:
    """What is known of a checkpoint; None if it has just been deleted."""
    try:
        with os.scandir(path) as entries:
            size = sum(entry.stat(follow_symlinks=False).st_size for entry in islice(entries, MAX_SUMMED))
        time = path.stat().st_mtime
    except OSError:
        return None
    url = f"/api/v1/jobs/{job_id}/checkpoints/{path.name}"
    about = {"name": path.name, "step": _step(path.name), "size": size, "time": time, "url": url}
    return about | {"state": checkpoint_files.quick_look(path)}
