"""A program under Horovod's own elastic driver: `edt-launch --horovodrun`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from typer import Option

from edt_launch.cluster.discovery_script import ScriptOptions
from edt_launch.core.command_line import words
from edt_launch.core.errors import UsageError
from edt_launch.core.run_options import PortOptions, RunOptions
from edt_launch.launcher.plan import JobOutcome
from edt_launch.launcher.program import Kind, LaunchedJob
from edt_launch.launcher.programs.script import Script

UNKNOWN = ("max_restarts", "hang_timeout", "ready_timeout", "warm_start")
"""Options that Horovod's driver has nothing like."""


STATIC_HOSTS = "--horovodrun takes hosts that do not change, or an allocation file: leave out --horovodrun"


@dataclass(frozen=True)
class Options:
    """The option that asks for it."""

    horovodrun: Annotated[
        bool,
        Option(
            "--horovodrun",
            help="Run the job with Horovod's own driver, horovodrun --host-discovery-script.",
        ),
    ] = False


class UnderHorovodrun(Script):
    """A script or a command that horovodrun runs."""

    def run(self, job: LaunchedJob) -> JobOutcome:
        """Run it.

        Raises:
            UsageError: its hosts may change.
        """
        if job.plan.source is not None and job.plan.allocation is None:
            raise UsageError(f"{job.plan.source}: {STATIC_HOSTS}")
        from edt_launch.launcher.horovodrun.run import Horovodrun

        return Horovodrun(self.command, job).run()


class HorovodrunKind(Kind):
    """Programs that Horovod's own driver runs."""

    name = "horovodrun"
    options = Options

    def read(self, program: list[str], options: RunOptions, own: Options) -> UnderHorovodrun | None:
        """The program; options that Horovod's driver does not know are refused."""
        if not own.horovodrun:
            return None
        if options.under_mpi:
            raise UsageError("--horovodrun needs ssh to the hosts: name them with -H, without --under-mpi")
        if options.of(ScriptOptions).host_discovery_script is not None:
            raise UsageError(f"{STATIC_HOSTS}, or give --host-discovery-script to horovodrun itself")
        unknown = RunOptions(**{name: getattr(options, name) for name in UNKNOWN})
        both = [*words(unknown), *words(options.of(PortOptions))]
        if given := [word for word in both if word.startswith("--")]:
            raise UsageError(
                f"leave out {' and '.join(given)} with --horovodrun: Horovod's driver has nothing like it"
            )
        return UnderHorovodrun.of(program, options)

    def command_line(self, options: RunOptions, framework: str | None, command: Sequence[str]) -> list[str]:
        """As any other's; a job is not started again by itself."""
        return [*words(replace(options, max_restarts=None)), *words(Options(True)), "--", *command]


KIND = HorovodrunKind()
