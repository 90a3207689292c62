"""Keeps workers of an earlier run of a job from writing into the checkpoints of a later one.

A worker whose host was cut off, or that was stopped, may go on after its job was started again elsewhere.
"""

import os
from collections.abc import Mapping

from edt_hvd.errors import StateError
from edt_messages.runs import FILE, MAX_TEXT, JobRun


def check(environ: Mapping[str, str] = os.environ) -> None:
    """See that no later run has begun than the one of the process that has this environment.

    Nothing is wrong where no launcher numbers the runs, or where its file cannot be seen.

    Raises:
        StateError: a later run has begun.
    """
    mine, path = JobRun.of(environ), environ.get(FILE)
    newest = _newest(path) if path else None
    if mine is not None and newest is not None and mine.is_superseded_by(newest):
        raise StateError(
            f"this worker belongs to run {mine.number} of the job; run {newest.number} has begun since, "
            "and its workers write the checkpoints"
        )


def _newest(path: str) -> JobRun | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return JobRun.read(file.read(MAX_TEXT))
    except OSError:  # another host's folder, or removed
        return None
