"""What `edt-launch` is to run, and how that ended."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.cluster.allocation import Allocation
from edt_launch.cluster.follower import Limits
from edt_launch.cluster.hosts import HostSource
from edt_launch.core.errors import ExitCode
from edt_launch.core.run_dir import RunDir
from edt_launch.launcher.ssh import Remote


@dataclass(frozen=True)
class Wmla:
    """How a WMLA program is run.

    Attributes:
        framework: the way.
        code: the folder that it runs in, which is copied unless it was submitted.
        data_dir: its DATA_DIR; None for the default.
    """

    framework: Framework
    code: Path
    data_dir: Path | None = None


@dataclass(frozen=True)
class Plan:
    """What to run and where.

    Attributes:
        program: command that each worker runs.
        limits: bounds on the number of workers.
        paths: the job's output directory.
        allocation: hosts that never change; None to follow a file or a source.
        follow: allocation file to follow; None for none.
        source: of hosts, to follow; None for none.
        interface: network interface over which the workers talk; None to choose one.
        remote: how other hosts are reached.
        start_timeout: seconds to wait for enough slots.
        max_restarts: how often the job may be started again from its newest checkpoint.
        checkpoint_interval: seconds between two checkpoints at least; None for the default.
        keep_checkpoints: how many are kept; None for the default.
        hang_timeout: seconds after which a worker that does not get on is killed; 0: never, None: learned.
        ready_timeout: the same for a worker that does not come to the elastic function.
        verbose: show what edt-launch itself says, too.
        variables: environment variables that the job gets besides our own.
        warm_start: fork workers from a process that has imported what they need, where that can be.
        directory: where its processes start; None for the present one.
        checkpoint_dir: the folder of its checkpoints; None for that of the output directory.
        wmla: how the program is run, if it is one for WMLA; None for any other.
        horovodrun: whether Horovod's own elastic driver runs it.
    """

    program: Sequence[str]
    limits: Limits
    paths: RunDir
    allocation: Allocation | None = None
    follow: Path | None = None
    source: HostSource | None = None
    interface: str | None = None
    remote: Remote = field(default_factory=Remote)
    start_timeout: float = 600.0
    max_restarts: int = 3
    checkpoint_interval: float | None = None
    keep_checkpoints: int | None = None
    hang_timeout: float | None = None
    ready_timeout: float | None = None
    verbose: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)
    warm_start: bool = True
    directory: Path | None = None
    checkpoint_dir: Path | None = None
    wmla: Wmla | None = None
    horovodrun: bool = False

    @property
    def output_option(self) -> str:
        """What names the output directory on the command line."""
        return "--output-dir" if self.wmla is None else "--result-dir"

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints."""
        return self.checkpoint_dir or self.paths.checkpoint


@dataclass(frozen=True)
class Outcome:
    """How a job ended: the exit code, and the last thing to tell the user (may be empty)."""

    exit_code: ExitCode
    message: str = ""
