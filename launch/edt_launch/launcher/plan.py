"""What `edt-launch` has made of its options, and how a job ended."""

from dataclasses import dataclass, field
from pathlib import Path

from edt_launch.cluster.allocation import Allocation
from edt_launch.cluster.follower import Limits
from edt_launch.cluster.hosts import HostSource
from edt_launch.core.errors import ExitCode
from edt_launch.core.run_dir import RunDir
from edt_launch.core.run_options import RunOptions


@dataclass(frozen=True)
class Plan:
    """Where and how to run a program.

    Attributes:
        limits: bounds on the number of workers.
        paths: the job's output directory.
        allocation: hosts that never change; None to follow a file or a source.
        follow: allocation file to follow; None for none.
        source: of hosts, to follow; None for none.
        options: those that count as they are given.
        checkpoint_dir: the folder of its checkpoints; None for that of the output directory.
    """

    limits: Limits
    paths: RunDir
    allocation: Allocation | None = None
    follow: Path | None = None
    source: HostSource | None = None
    options: RunOptions = field(default_factory=RunOptions)
    checkpoint_dir: Path | None = None

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints."""
        return self.checkpoint_dir or self.paths.checkpoint


@dataclass(frozen=True)
class Outcome:
    """How a job ended: the exit code, and the last thing to tell the user (may be empty)."""

    exit_code: ExitCode
    message: str = ""
