"""The runs of a job: each is marked as the job's, with a higher number than those before."""

import uuid
from collections.abc import Callable
from pathlib import Path

from edt_launch.core.files import plain_files
from edt_launch.core.files.atomic import write_atomically
from edt_messages.runs import FILE, MAX_TEXT, JobRun


class JobRuns:
    """Numbers the runs of the job whose output directory has the file `path`.

    `complain` is told when a number cannot be written.
    """

    def __init__(self, path: Path, complain: Callable[[str], None]) -> None:
        self._path = path
        self._complain = complain
        self._newest = _read(path) or JobRun(uuid.uuid4().hex, 0)

    def begin(self) -> JobRun:
        """A new run. From now on workers of earlier ones write no checkpoints."""
        self._newest = run = JobRun(self._newest.job, self._newest.number + 1)
        try:
            write_atomically(self._path, run.text)
        except OSError as error:
            self._complain(
                f"{self._path} cannot be written: {error.strerror}; workers of earlier runs that are left on "
                "hosts which cannot be reached may go on to write checkpoints"
            )
        return run

    def variables(self, run: JobRun) -> dict[str, str]:
        """What the processes of a run have in their environment."""
        return {**run.variables, FILE: str(self._path)}


def _read(path: Path) -> JobRun | None:
    try:
        return JobRun.read(plain_files.read(path, MAX_TEXT).decode(errors="replace"))
    except OSError:  # the first run; or whatever the job has put there
        return None
