"""The options of `edt-launch` that every kind of program has.

Sources of hosts and transports declare theirs themselves; they are in `groups`.
"""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeVar

from typer import Option

from edt_launch.core import command_line
from edt_launch.core.command_line import Variable
from edt_launch.core.errors import UsageError
from edt_launch.core.system.ports import VARIABLE, PortRange

_T = TypeVar("_T")


class ViewKind(StrEnum):
    """How a job is shown."""

    AUTO = "auto"
    LIVE = "live"
    PLAIN = "plain"


@dataclass(frozen=True)
class PortOptions:
    """The option for ports, which is a setting of the service, too."""

    port_range: Annotated[
        str | None,
        Option(metavar="LOW:HIGH", help="Ports for jobs to listen on, on every host. Default: any."),
        Variable(VARIABLE),
    ] = None

    @property
    def ports(self) -> PortRange | None:
        """The range; None for any port.

        Raises:
            UsageError: it is no range.
        """
        try:
            return None if self.port_range is None else PortRange.parse(self.port_range)
        except ValueError as error:
            raise UsageError(f"--port-range {error}") from None


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a job is run. Each option is declared here alone; None stands for what its help says."""

    min_np: Annotated[int, Option(min=1, help="Minimum number of workers.")] = 1
    max_np: Annotated[
        int | None,
        Option(
            min=1, help="Maximum number of workers. Default: one a slot; on this machine, one a GPU or core."
        ),
    ] = None
    allocation: Annotated[Path | None, Option(help="Follow this allocation file as it changes.")] = None
    under_mpi: Annotated[
        bool,
        Option(
            "--under-mpi",
            help="Run as a rank of mpirun or srun, one a host; rank 0 runs the job on all of them.",
        ),
    ] = False
    transport: Annotated[str | None, Option(help="Transport for hosts that name none. Default: ssh.")] = None
    output_dir: Annotated[
        Path | None,
        Option(
            help="Folder for logs, events, checkpoints; a job continues in its own. Default: new, in runs."
        ),
    ] = None
    network_interface: Annotated[
        str | None, Option(help="Network interface for traffic between workers. Default: found by trying.")
    ] = None
    start_timeout: Annotated[float, Option(min=0, max=1e9, help="Seconds to wait for --min-np slots.")] = (
        600.0
    )
    grace: Annotated[
        float, Option(min=0, max=1e6, help="Seconds between SIGTERM and SIGKILL when the job is stopped.")
    ] = 30.0
    warm_start: Annotated[
        bool, Option(help="Fork workers from a process that has already imported torch and Horovod.")
    ] = True
    max_restarts: Annotated[
        int | None,
        Option(min=0, help="Restarts allowed after the loss of all workers. Default: 3."),
    ] = None
    checkpoint_interval: Annotated[
        float | None,
        Option(min=0, max=1e9, help="Minimum seconds between two checkpoints. Default: 10."),
        Variable("EDT_CHECKPOINT_INTERVAL"),
    ] = None
    keep_checkpoints: Annotated[
        int | None,
        Option(min=1, help="Number of checkpoints to keep. Default: 3."),
        Variable("EDT_CHECKPOINT_KEEP"),
    ] = None
    hang_timeout: Annotated[
        float | None,
        Option(
            min=0,
            max=1e9,
            help="Seconds without progress until a worker is killed; 0: never. Default: learned from steps.",
        ),
    ] = None
    ready_timeout: Annotated[
        float | None,
        Option(
            min=0,
            max=1e9,
            help="Seconds a worker may take from its start to the elastic function; 0: any. Default: "
            "learned from earlier starts.",
        ),
    ] = None
    max_log_size: Annotated[
        int | None,
        Option(
            min=1,
            metavar="BYTES",
            help="Maximum size of each log. It keeps the beginning of the output and, at the end of the job, "
            "its end. Default: unlimited.",
        ),
    ] = None
    single_log: Annotated[
        bool,
        Option(
            "--single-log",
            help="Write all workers' output to log/launcher.log, each line with its rank, instead of showing "
            "it and keeping a log for each worker.",
        ),
    ] = False
    view: Annotated[
        ViewKind,
        Option(help="live: a view that is updated in place; plain: lines; auto: live on a terminal."),
    ] = ViewKind.AUTO
    verbose: Annotated[bool, Option("--verbose", help="Also show the decisions of edt-launch.")] = False
    groups: tuple[object, ...] = ()
    """The options that sources of hosts and transports have declared, and that for ports."""

    @property
    def ports(self) -> PortRange | None:
        """The ports that the job may listen on; None for any.

        Raises:
            UsageError: the option makes no sense.
        """
        return self.of(PortOptions).ports

    def of(self, group: type[_T]) -> _T:
        """The options of a source of hosts, of a transport, or for ports."""
        return command_line.of(self.groups, group)
