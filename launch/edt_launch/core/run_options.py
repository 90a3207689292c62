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
from edt_launch.core.ports import VARIABLE, PortRange

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
        Option(
            metavar="LOW:HIGH", help="Ports that jobs listen on, on every host; else the system's choice."
        ),
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

    min_np: Annotated[int, Option(min=1, help="Workers that the job needs at least.")] = 1
    max_np: Annotated[
        int | None,
        Option(min=1, help="Workers it may have at most; else one a slot, or one a GPU or core here."),
    ] = None
    allocation: Annotated[
        Path | None, Option(help="Follow this allocation file, now and whenever it changes.")
    ] = None
    under_mpi: Annotated[
        bool,
        Option(
            "--under-mpi",
            help="Be a rank of mpirun or srun, one a host: rank 0 runs the job on all hosts.",
        ),
    ] = False
    transport: Annotated[
        str | None, Option(help="How other hosts are reached that name no transport, else ssh.")
    ] = None
    output_dir: Annotated[
        Path | None, Option(help="Logs, events, checkpoints: a new folder in runs, or one to go on in.")
    ] = None
    network_interface: Annotated[
        str | None, Option(help="Over which the workers talk, if the right one is not found.")
    ] = None
    start_timeout: Annotated[
        float, Option(min=0, max=1e9, help="Seconds to wait for the slots that the job needs.")
    ] = 600.0
    grace: Annotated[
        float, Option(min=0, max=1e6, help="Seconds from SIGTERM to SIGKILL when the job is told to end.")
    ] = 30.0
    warm_start: Annotated[
        bool, Option(help="Fork workers from a process that has imported what they need.")
    ] = True
    max_restarts: Annotated[
        int | None,
        Option(min=0, help="How often a job whose workers were all lost is started again, else 3."),
    ] = None
    checkpoint_interval: Annotated[
        float | None,
        Option(min=0, max=1e9, help="Seconds between two checkpoints at least, else 10."),
        Variable("EDT_CHECKPOINT_INTERVAL"),
    ] = None
    keep_checkpoints: Annotated[
        int | None,
        Option(min=1, help="How many checkpoints are kept, else 3."),
        Variable("EDT_CHECKPOINT_KEEP"),
    ] = None
    hang_timeout: Annotated[
        float | None,
        Option(
            min=0,
            max=1e9,
            help="Seconds after which a worker that does not get on is killed; 0: never. Else it is learned.",
        ),
    ] = None
    ready_timeout: Annotated[
        float | None,
        Option(
            min=0,
            max=1e9,
            help="Seconds from its start to the elastic function after which a worker is killed; 0: never. "
            "Else it is learned.",
        ),
    ] = None
    max_log_size: Annotated[
        int | None,
        Option(
            min=1,
            metavar="BYTES",
            help="Of each worker's log, after which no more of its output is kept and shown; else any.",
        ),
    ] = None
    view: Annotated[ViewKind, Option(help="Live on a terminal, or plain lines.")] = ViewKind.AUTO
    verbose: Annotated[bool, Option("--verbose", help="Show what edt-launch itself decides, too.")] = False
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
