"""What a job runs: how `edt-launch` reads it from a command line, runs it, and starts its workers.

Nothing outside the package of a kind of program asks which kind it is.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from edt_launch.cluster.follower import SizeLimits
from edt_launch.cluster.ranks import Rank
from edt_launch.core.command_line import words
from edt_launch.core.errors import UsageError
from edt_launch.core.history import events
from edt_launch.core.history.event_log import EventLog
from edt_launch.core.job_sizes import Sizes
from edt_launch.core.run_options import RunOptions
from edt_launch.core.system.ports import PortRange
from edt_launch.launcher.hosts import checkpoints
from edt_launch.launcher.plan import JobOutcome, Plan
from edt_launch.launcher.termination import Listen
from edt_launch.launcher.view.output import Line
from edt_launch.launcher.view.view import View
from edt_launch.membership import members
from edt_launch.membership.protocol import Resize, Slot, Worker
from edt_launch.worlds.gloo import GlooWorld
from edt_launch.worlds.world import World


@dataclass(frozen=True)
class LaunchedJob:
    """A job that is to be run."""

    plan: Plan
    view: View
    log: EventLog
    listen: Listen


class Program(Protocol):
    """What a job runs."""

    @property
    def output_option(self) -> str:
        """The option that names the output directory, as messages say."""

    @property
    def output_dir(self) -> Path | None:
        """The output directory that an option of its own names; None for that of `--output-dir`."""

    def options(self, options: RunOptions) -> RunOptions:
        """The options as the program changes them."""

    def bounds(self, limits: SizeLimits) -> SizeLimits:
        """The numbers of workers that it can run with, where the user asks for `limits`."""

    def slots_here(self, limits: SizeLimits) -> int:
        """The slots that this machine has for it where the user names no hosts."""

    def rank(self, options: RunOptions, environment: Mapping[str, str]) -> Rank | None:
        """Which rank this process is, where users start the program on each host; None: it is started once.

        Raises:
            UsageError: it cannot be started in that way.
        """

    def run(self, job: LaunchedJob) -> JobOutcome:
        """Run it to its end; no process of it is left on this machine.

        Raises:
            EdtLaunchError: it could not start.
        """


@dataclass
class Workers:
    """The workers that a program has: what they run, and what differs from one to the next.

    These are any command's; a kind of program overrides what is different about its own, and says what a
    resize means to it. Workers that have to train fail by ending with exit code 0 before they have; others
    may be programs that call no elastic function.
    """

    command: Sequence[str]
    variables: Mapping[str, str] = field(default_factory=dict)
    directory: Path | None = None
    resize: Resize = Resize.IN_PLACE
    has_to_train: bool = False
    end_grace: float = 0.0
    """Seconds that the workers have after SIGTERM when the job is told to end, besides those for us."""
    output_option: str = "--output-dir"
    ports: PortRange | None = None
    """Those of the job, which `Elastic` sets; None for any."""

    def limits(self, limits: members.WorldLimits) -> members.WorldLimits:
        """By what its worlds are formed, where a script's are formed by `limits`."""
        return limits

    def world(self, address_towards: Callable[[Iterable[str]], str]) -> World:
        """How the workers of a generation find one another.

        `address_towards` knows the address of this machine for workers on given hosts.
        """
        return GlooWorld(address_towards, self.ports)

    def environment(self, common: Mapping[str, str]) -> dict[str, str]:
        """What all workers find in their environment; `common` is what those of every program find."""
        return {**common, **self.variables}

    def slots(self, slots: Sequence[Slot]) -> tuple[Slot, ...]:
        """A slot for each worker, of those that the job has."""
        return tuple(slots)

    def variables_of(self, worker: Worker, slots: Sequence[Slot], address: str) -> dict[str, str]:
        """What a worker that is to be started finds besides.

        `slots` are those of all workers, `address` is where they reach this machine.
        """
        return {}

    def command_of(self, worker: Worker) -> Sequence[str]:
        """The command of a worker, where it differs from the others'; else empty."""
        return ()

    def meets_at(self, slots: Sequence[Slot]) -> str | None:
        """The host whose agent reserves a port for the workers, their `MASTER_PORT`; None for none."""
        return None

    def copy_of(self, worker: int, stream: str) -> Path | None:
        """A file for what a worker prints to `stream`, "stdout" or "stderr", byte by byte; None for none."""
        return None

    def receive(self, text: str) -> None:
        """A worker has sent a message of its program; called in the thread of its connection."""

    def shown(self, line: Line) -> Line:
        """A line that a worker has printed, as the user sees it."""
        return line

    def explain(self, failures: Sequence[events.Failed]) -> str:
        """What to tell the user about the failures that ended the job, the first one last; may be empty."""
        return ""

    def how_to_go_on(self, folder: Path, output: str) -> str:
        """What to tell the user of a job that was left, with checkpoints in `folder`."""
        return checkpoints.how_to_go_on(folder, output)

    def advice(self, last_lines: Sequence[str]) -> str:
        """What to tell the user when no worker has come to a rendezvous; may be empty."""
        return ""


@dataclass(frozen=True)
class NoOptions:
    """A kind of program without options of its own."""


class Kind(ABC):
    """A kind of program: one of `kinds.kinds`, or an entry point of the group `edt_launch.programs`.

    "--name" is the option that asks for it, `options` a dataclass of the options that it alone has, and
    `frameworks` are the names by which jobs of the service ask for it.
    """

    name: ClassVar[str]
    options: ClassVar[type] = NoOptions
    frameworks: ClassVar[Sequence[str]] = ()

    @abstractmethod
    def read(self, program: list[str], options: RunOptions, own: Any) -> Program | None:
        """The program of a command line without options; None if that does not ask for this kind.

        Raises:
            UsageError: an option makes no sense for it, or a file is not there.
        """

    def parse(self, words: Sequence[str]) -> tuple[RunOptions, Any, list[str]]:
        """Read a command line of its own: `edt-launch --program NAME WORDS`.

        Returns:
            The options that every kind has, those of this one, and the program with its arguments.

        Raises:
            UsageError: the words make no sense, or there is no such command line.
        """
        raise UsageError(f"--program {self.name}: it has no command line of its own; leave out --program")

    def sizes(self, framework: str | None, command: Sequence[str], wanted: Sizes) -> Sizes | None:
        """The sizes that a job of the service can have, where its user wants these.

        None if the command is none of this kind's.

        Raises:
            ValueError: it can have none of them.
        """
        return None

    def advise(self, source: str) -> Sequence[str]:
        """What a script of this source should have for resizes, and has not."""
        return ()

    def check(  # noqa: B027 - a kind may have nothing to check
        self, framework: str, command: Sequence[str], least: int, most: int
    ) -> None:
        """See whether a job of the service can run so, on so many workers.

        Raises:
            ValueError: it cannot.
        """

    def command_line(self, options: RunOptions, framework: str | None, command: Sequence[str]) -> list[str]:
        """The arguments of the `edt-launch` that runs a job of the service, which may name no framework."""
        return [*words(options), "--", *command]
