"""The command `edt-launch`: an elastic job on this machine, over ssh, or where an allocation file says."""

import contextlib
import os
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from edt_launch.cluster import ranks
from edt_launch.cluster.hosts import HostOptions, HostSource
from edt_launch.cluster.ranks import Rank
from edt_launch.cluster.slurm_job import PREEMPTION, SlurmJob
from edt_launch.core.command_line import with_options
from edt_launch.core.errors import EdtLaunchError, ExitCode, UsageError
from edt_launch.core.run_dir import RunDir
from edt_launch.core.run_options import RunOptions
from edt_launch.core.system import current_directory, environments, standard_streams
from edt_launch.core.text.masking import without_secrets
from edt_launch.launcher.plan import JobOutcome, Plan, allocation_of, announcement, limits_of, source_of
from edt_launch.launcher.program import Program
from edt_launch.launcher.programs import kinds
from edt_launch.launcher.runs import job
from edt_launch.launcher.transports.choice import offered_by, option_groups
from edt_launch.launcher.transports.transport import Transport
from edt_launch.launcher.view.view import make_view

GROUPS = option_groups()

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command(context_settings={"allow_interspersed_args": False})
@with_options(RunOptions, *GROUPS, *(kind.options for kind in kinds.kinds()))
def launch(
    program: Annotated[
        list[str], typer.Argument(metavar="SCRIPT.PY [ARGS]", help="A Python script or a command.")
    ],
    options: RunOptions,
    *own: object,
) -> None:
    """Run SCRIPT.PY on a number of workers that may change while it runs.

    What follows the script are its own arguments. Exit codes: 0 success, 1 the job failed, 2 usage,
    3 it could not start, 4 a mistake in edt-launch itself, 5 paused by SIGUSR1, 6 the machine lacks disk
    space or memory, 129, 130, 143 ended by SIGHUP, Ctrl-C, SIGTERM.
    """
    groups, its_own = own[: len(GROUPS)], own[len(GROUPS) :]
    whole = replace(options, groups=groups)
    _run(lambda: (kinds.read(program, whole, its_own), program, whole))


def launch_as(name: str, words: list[str]) -> None:
    """Run a program by the command line of its own kind, called `name`."""

    def read() -> tuple[Program, list[str], RunOptions]:
        try:
            kind = kinds.named(name)
        except LookupError as error:
            raise UsageError(f"--program {name}: {error}; give one of {', '.join(kinds.names())}") from None
        options, own, program = kind.parse(words)
        chosen = kind.read(program, options, own)
        assert chosen is not None
        return chosen, program, options

    _run(read)


def _run(read: Callable[[], tuple[Program, list[str], RunOptions]]) -> None:
    """Run the program that `read` reads from a command line, with its words and options; exits."""
    try:
        chosen, program, options = read()
        options = chosen.options(options)
        slurm = SlurmJob.detect(os.environ) if options.allocation is None else None
        with contextlib.ExitStack() as stack:
            signals = stack.enter_context(job.received_signals(PREEMPTION if slurm is not None else ()))
            rank = ranks.rank_of(os.environ) if options.under_mpi else chosen.rank(options, os.environ)
            if rank is not None:
                outcome = _run_rank(rank, chosen, program, options, signals, stack)
            else:
                where = HostOptions(os.environ, options.groups)
                source = source_of(where, options.allocation, options.transport)
                said = announcement(source, where)
                offered = offered_by(source, options)
                outcome = _run_job(chosen, program, options, source, signals, said, offered)
        if slurm is not None and outcome.exit_code == ExitCode.LEFT and signals.preempted_by is not None:
            typer.echo(outcome.message, err=True)
            outcome = replace(outcome, message=f"edt-launch: {slurm.go_on(signals.preempted_by)}")
    except EdtLaunchError as error:
        outcome = JobOutcome(error.exit_code, f"edt-launch: {error}")
    if outcome.message:
        typer.echo(outcome.message, err=True)
    raise typer.Exit(outcome.exit_code)


def _run_job(
    chosen: Program,
    program: list[str],
    options: RunOptions,
    source: HostSource | None,
    signals: list[int],
    said: str,
    transports: tuple[Transport, ...] = (),
) -> JobOutcome:
    limits = limits_of(
        options.min_np, options.max_np, source, options.allocation, HostOptions(os.environ, options.groups)
    )
    limits = chosen.bounds(limits)
    folder = chosen.output_dir or options.output_dir or _new_folder(program)
    plan = Plan(
        limits=limits,
        paths=RunDir(Path(os.path.abspath(folder))),
        allocation=allocation_of(source, limits, chosen.slots_here(limits)),
        follow=options.allocation.absolute() if options.allocation else None,
        source=source if source is not None and source.may_change else None,
        options=options,
        transports=transports,
    )
    if said:
        typer.echo(said, err=True)
    return job.run(chosen, plan, make_view(options.view, sys.stdout, sys.stderr), signals)


def _run_rank(
    rank: Rank,
    chosen: Program,
    program: list[str],
    options: RunOptions,
    signals: list[int],
    stack: contextlib.ExitStack,
) -> JobOutcome:
    """Be one of the ranks that mpirun, srun or a user has started."""
    from edt_launch.launcher import under_mpi

    environment = ranks.without_starter(os.environ)
    os.environ.clear()
    os.environ.update(environment)
    rank = stack.enter_context(under_mpi.elected(rank, options))
    own = under_mpi.own_slots(rank, environment, options)
    if rank.number:
        end = under_mpi.serve(rank, options, own, environment, signals)
        return under_mpi.outcome_of(rank, end, options)
    transport, source, hosts = stack.enter_context(under_mpi.gathered(rank, options, own, signals))
    options = replace(options, transport=transport.name)
    followed = source if options.allocation is None else None
    said = f"edt-launch: uses the hosts of {len(hosts)} ranks: {', '.join(host.host for host in hosts)}"
    outcome = _run_job(chosen, program, options, followed, signals, said, (transport,))
    transport.exit_code = outcome.exit_code
    return outcome


def main() -> None:
    """Run the command line."""
    standard_streams.ensure_open()
    environments.adopt()
    try:
        if sys.argv[1:2] == ["--program"] and len(sys.argv) > 2:
            launch_as(sys.argv[2], sys.argv[3:])
        app(prog_name="edt-launch")
    except typer.Exit as ended:
        sys.exit(ended.exit_code)
    except Exception as error:  # noqa: BLE001 - the last resort: every other failure has its own exit code
        if isinstance(error, FileNotFoundError) and current_directory.is_deleted():
            print(f"edt-launch: {current_directory.DELETED}; {current_directory.ADVICE}", file=sys.stderr)
            sys.exit(ExitCode.USAGE)
        details = f"{traceback.format_exc()}edt-launch: a mistake in edt-launch itself: {error!r}"
        print(f"{without_secrets(details, os.environ)}; please report it", file=sys.stderr)
        sys.exit(ExitCode.INTERNAL)


def _new_folder(words: list[str]) -> Path:
    names = [word for word in words if not word.startswith("-")] or words
    script = next((word for word in names if word.endswith(".py")), names[0])
    return Path("runs") / f"{Path(script).stem}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"


if __name__ == "__main__":
    main()
