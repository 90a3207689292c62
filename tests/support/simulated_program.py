"""A program without processes."""

from dataclasses import dataclass, field
from pathlib import Path

from edt_launch.cluster.follower import SizeLimits
from edt_launch.core.errors import ExitCode
from edt_launch.launcher.plan import JobOutcome
from edt_launch.launcher.program import LaunchedJob


@dataclass
class SimulatedProgram:
    """Ends as it is told, and keeps the jobs that it was run as."""

    outcome: JobOutcome | Exception = field(default_factory=lambda: JobOutcome(ExitCode.SUCCESS))
    output_option: str = "--its-folder"
    output_dir: Path | None = None
    jobs: list[LaunchedJob] = field(default_factory=list)

    def bounds(self, limits: SizeLimits) -> SizeLimits:
        return limits

    def run(self, job: LaunchedJob) -> JobOutcome:
        self.jobs.append(job)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome
