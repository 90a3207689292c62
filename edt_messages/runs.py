"""Which run of its job a process belongs to.

Each start of a job's workers is a run. Its number is higher than that of all runs before, and the job's mark
is the same: a process of an earlier run is recognized wherever it is found. A file names the newest run.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

JOB, RUN, FILE = "EDT_JOB", "EDT_RUN", "EDT_RUN_FILE"
"""Variables of a job's processes: the job's mark, the number of the run, and the path of the file."""

BROUGHT = "EDT_CHECKPOINTS_BROUGHT"
"""Set on hosts that do not see the job's output directory: checkpoints are brought to and from them."""

MAX_TEXT = 4096
"""Characters of the file at most."""


@dataclass(frozen=True)
class JobRun:
    """A run of a job."""

    job: str
    number: int

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "JobRun | None":
        """The run of the process that has this environment; None if it belongs to none."""
        job, number = environment.get(JOB), environment.get(RUN, "")
        return cls(job, int(number)) if job and number.isdecimal() and len(number) < 16 else None

    @classmethod
    def read(cls, text: str) -> "JobRun | None":
        """The run that the text of a file names; None if that makes no sense."""
        try:
            content = json.loads(text[:MAX_TEXT])
            job, number = content["job"], content["run"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        is_run = isinstance(job, str) and job.isalnum() and type(number) is int and 0 <= number < 2**53
        return cls(job, number) if is_run else None

    @property
    def text(self) -> str:
        """The text of a file that names it."""
        return json.dumps({"job": self.job, "run": self.number}) + "\n"

    @property
    def variables(self) -> dict[str, str]:
        """What its processes have in their environment."""
        return {JOB: self.job, RUN: str(self.number)}

    def is_superseded_by(self, newest: "JobRun") -> bool:
        """Whether a process of this run may not write any more what it shares with those of the newest."""
        return newest.job != self.job or newest.number > self.number
