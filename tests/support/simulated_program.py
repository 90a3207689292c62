"""A program without processes."""

from dataclasses import dataclass, field
from pathlib import Path

from edt_launch.cluster.follower import Limits
from edt_launch.core.errors import ExitCode
from edt_launch.launcher.plan import Outcome
from edt_launch.launcher.program import Job


@dataclass
class SimulatedProgram:
    """Ends as it is told, and keeps the jobs that it was run as."""

    outcome: Outcome | Exception = field(default_factory=lambda: Outcome(ExitCode.SUCCESS))
    output_option: str = "--its-folder"
    output_dir: Path | None = None
    jobs: list[Job] = field(default_factory=list)

    def bounds(self, limits: Limits) -> Limits:
        return limits

    def run(self, job: Job) -> Outcome:
        self.jobs.append(job)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome
