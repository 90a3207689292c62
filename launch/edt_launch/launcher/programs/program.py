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
    """A job that is to be run.

    Attributes:
        plan: where and how.
        view: shows it.
        log: keeps its events.
        listen: gives the signals that have come.
    """

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

    These are any command's; a kind of program overrides what is different about its own.

    Attributes:
        command: words that each worker runs.
        variables: environment variables that all get besides ours.
        directory: where they start; None for the present one.
        is_gang: whether all run together or none: they are not resized, not forked, and not started again.
        output_option: see `Program.output_option`.
    """

    command: Sequence[str]
    variables: Mapping[str, str] = field(default_factory=dict)
    directory: Path | None = None
    is_gang: bool = False
    output_option: str = "--output-dir"

    def environment(self, common: Mapping[str, str]) -> dict[str, str]:
        """What all workers find in their environment; `common` is what those of every program find."""
        return {**common, **self.variables}

    def slots(self, slots: Sequence[Slot]) -> tuple[Slot, ...]:
        """A slot for each worker, of those that the job has."""
        return tuple(slots)

    def variables_of(self, worker: Worker, slots: Sequence[Slot], address: str) -> dict[str, str]:
        """What a worker that is to be started finds besides.

        Args:
            worker: the worker.
            slots: those of all workers.
            address: of this machine, where the workers reach it.
        """
        return {}

    def copy_of(self, worker: int, stream: str) -> Path | None:
        """A file for what a worker prints to `stream`, "stdout" or "stderr", byte by byte; None for none."""
        return None

    def advice(self, last_lines: Sequence[str]) -> str:
        """What to tell the user when no worker has come to a rendezvous; empty if there is nothing to tell.

        Args:
            last_lines: of the worker that failed first.
        """
        return ""


@dataclass(frozen=True)
class NoOptions:
    """A kind of program without options of its own."""


class Kind(ABC):
    """A kind of program: `KIND` of a module that `kinds.KINDS` names.

    Attributes:
        name: of the kind; "--name" is the option that asks for it.
        options: a dataclass of the options that it alone has.
        frameworks: the names by which jobs of the service ask for it.
    """

    name: ClassVar[str]
    options: ClassVar[type] = NoOptions
    frameworks: ClassVar[Sequence[str]] = ()

    @abstractmethod
    def read(self, program: list[str], options: RunOptions, own: Any) -> Program | None:
        """The program of a command line; None if that does not ask for this kind.

        Args:
            program: its words, without options.
            options: those that every kind has.
            own: an instance of `options`.

        Raises:
            UsageError: an option makes no sense for it, or a file is not there.
        """

    def check(  # noqa: B027 - a kind may have nothing to check
        self, framework: str, command: Sequence[str], least: int, most: int
    ) -> None:
        """See whether a job of the service can run so.

        Args:
            framework: one of `frameworks`.
            command: the job's words.
            least, most: its numbers of workers.

        Raises:
            ValueError: it cannot.
        """

    def command_line(
        self, options: RunOptions, framework: str | None, command: Sequence[str], data_dir: str | None
    ) -> list[str]:
        """The arguments of the `edt-launch` that runs a job of the service.

        Args:
            options: those that every kind has.
            framework: one of `frameworks`; None for a job that names none.
            command: the job's words.
            data_dir: the folder of its data; None if it names none.
        """
        return [*words(options), "--", *command]
