"""What a job runs: how `edt-launch` reads it from a command line, runs it, and starts its workers.

Nothing outside the package of a kind of program asks which kind it is.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from edt_launch.cluster.follower import Limits
from edt_launch.core.command_line import words
from edt_launch.core.event_log import EventLog
from edt_launch.core.run_options import RunOptions
from edt_launch.launcher.plan import Outcome, Plan
from edt_launch.launcher.termination import Listen
from edt_launch.launcher.view.view import View
from edt_launch.membership.protocol import Slot, Worker


@dataclass(frozen=True)
class Job:
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

    def bounds(self, limits: Limits) -> Limits:
        """The numbers of workers that it can run with, where the user asks for `limits`."""

    def run(self, job: Job) -> Outcome:
        """Run it to its end; no process of it is left on this machine.

        Raises:
            EdtLaunchError: it could not start.
        """


@dataclass
class Workers:
    """The workers that a program has: what they run, and what differs from one to the next.

    These are any command's; a kind of program overrides what is different about its own. A gang runs together
    or not at all: its workers are not resized, not forked, and not started again. Workers that have to train
    fail by ending with exit code 0 before they have; others may be programs that call no elastic function.
    """

    command: Sequence[str]
    variables: Mapping[str, str] = field(default_factory=dict)
    directory: Path | None = None
    is_gang: bool = False
    has_to_train: bool = False
    output_option: str = "--output-dir"

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

    def meets_at(self, slots: Sequence[Slot]) -> str | None:
        """The host whose agent reserves a port for the workers, their `MASTER_PORT`; None for none."""
        return None

    def copy_of(self, worker: int, stream: str) -> Path | None:
        """A file for what a worker prints to `stream`, "stdout" or "stderr", byte by byte; None for none."""
        return None

    def advice(self, last_lines: Sequence[str]) -> str:
        """What to tell the user when no worker has come to a rendezvous; may be empty."""
        return ""


@dataclass(frozen=True)
class NoOptions:
    """A kind of program without options of its own."""


class Kind(ABC):
    """A kind of program: `KIND` of a module that `kinds.KINDS` names.

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

    def check(  # noqa: B027 - a kind may have nothing to check
        self, framework: str, command: Sequence[str], least: int, most: int
    ) -> None:
        """See whether a job of the service can run so, on so many workers.

        Raises:
            ValueError: it cannot.
        """

    def command_line(
        self, options: RunOptions, framework: str | None, command: Sequence[str], data_dir: str | None
    ) -> list[str]:
        """The arguments of the `edt-launch` that runs a job of the service.

        The job may name no framework, and no folder of its data.
        """
        return [*words(options), "--", *command]
