"""The command `edt-launch`: an elastic job on this machine, over ssh, or where an allocation file says."""

import os
import shutil
import sys
import time
import traceback
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.adapters.wmla.running import command
from edt_launch.adapters.wmla.running.command import Options
from edt_launch.cluster.follower import Limits
from edt_launch.cluster.hosts import HostOptions
from edt_launch.core.errors import EdtLaunchError, ExitCode, UsageError
from edt_launch.core.run_dir import RunDir
from edt_launch.launcher import hosts, job
from edt_launch.launcher.plan import Outcome, Plan, Wmla
from edt_launch.launcher.ssh import Remote
from edt_launch.launcher.view.view import make_view

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


RESTARTS = 3
"""How often a job whose workers were all lost is started again, unless the command line says so."""


class ViewKind(StrEnum):
    """How a job is shown."""

    AUTO = "auto"
    LIVE = "live"
    PLAIN = "plain"


@app.command(context_settings={"allow_interspersed_args": False})
def launch(
    program: Annotated[
        list[str], typer.Argument(metavar="SCRIPT.PY [ARGS]", help="A Python script or a command.")
    ],
    min_np: Annotated[int, typer.Option(min=1, help="Workers that the job needs at least.")] = 1,
    max_np: Annotated[
        int | None,
        typer.Option(min=1, help="Workers it may have at most; else one a slot, or one a GPU or core here."),
    ] = None,
    host_list: Annotated[
        str | None, typer.Option("-H", "--hosts", metavar="HOST:SLOTS,...", help="Run on these hosts.")
    ] = None,
    hostfile: Annotated[
        Path | None,
        typer.Option(help="Run on the hosts of this file: 'host slots=N' or 'host devices=a,b' a line."),
    ] = None,
    allocation: Annotated[
        Path | None, typer.Option(help="Follow this allocation file, now and whenever it changes.")
    ] = None,
    host_discovery_script: Annotated[
        Path | None,
        typer.Option(help="Run this script now and then: it prints 'host:slots' or 'host' a line."),
    ] = None,
    slots_per_host: Annotated[
        int | None, typer.Option(min=1, help="Of hosts for which the script prints no number of slots.")
    ] = None,
    output_dir: Annotated[
        Path | None,
        typer.Option(help="Logs, events, checkpoints: a new folder in runs, or one to go on in."),
    ] = None,
    network_interface: Annotated[
        str | None, typer.Option(help="Over which the workers talk, if the right one is not found.")
    ] = None,
    ssh_port: Annotated[int | None, typer.Option(min=1, max=65535, help="For ssh to the hosts.")] = None,
    ssh_identity_file: Annotated[Path | None, typer.Option(help="Private key for ssh to the hosts.")] = None,
    start_timeout: Annotated[
        float, typer.Option(min=0, help="Seconds to wait for the slots that the job needs.")
    ] = 600.0,
    warm_start: Annotated[
        bool, typer.Option(help="Fork workers from a process that has imported what they need.")
    ] = True,
    max_restarts: Annotated[
        int | None,
        typer.Option(min=0, help="How often a job whose workers were all lost is started again, else 3."),
    ] = None,
    checkpoint_interval: Annotated[
        float | None, typer.Option(min=0, max=1e9, help="Seconds between two checkpoints at least, else 10.")
    ] = None,
    keep_checkpoints: Annotated[
        int | None, typer.Option(min=1, help="How many checkpoints are kept, else 3.")
    ] = None,
    hang_timeout: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Seconds after which a worker that does not get on is killed; 0: never. Else it is learned.",
        ),
    ] = None,
    ready_timeout: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Seconds from its start to the elastic function after which a worker is killed; 0: never. "
            "Else it is learned.",
        ),
    ] = None,
    wmla: Annotated[
        bool,
        typer.Option(
            "--wmla", help="Run a WMLA program: [OPTIONS] MODEL_DIR/MAIN.PY -- [ARGS]; its folder is copied."
        ),
    ] = False,
    framework: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(Framework), help="Of a WMLA program; else edtPyTorch, the elastic one."
        ),
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="DATA_DIR of a WMLA program, else a folder in its results.")
    ] = None,
    result_dir: Annotated[
        Path | None, typer.Option(help="RESULT_DIR of a WMLA program: its output directory.")
    ] = None,
    horovodrun: Annotated[
        bool,
        typer.Option(
            "--horovodrun",
            help="Run the job through horovodrun --host-discovery-script, Horovod's own driver.",
        ),
    ] = False,
    view: Annotated[ViewKind, typer.Option(help="Live on a terminal, or plain lines.")] = ViewKind.AUTO,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show what edt-launch itself decides, too.")
    ] = False,
) -> None:
    """Run SCRIPT.PY on a number of workers that may change while it runs.

    What follows the script are its own arguments. Exit codes: 0 success, 1 the job failed, 2 usage,
    3 it could not start, 4 a mistake in edt-launch itself, 5 paused by SIGUSR1, 129, 130, 143 ended by
    SIGHUP, Ctrl-C, SIGTERM.
    """
    try:
        if horovodrun and host_discovery_script is not None:
            raise UsageError(
                "--horovodrun takes hosts that do not change, or an allocation file: leave out "
                "--horovodrun, or give --host-discovery-script to horovodrun itself"
            )
        if horovodrun:
            _check_horovodrun(
                {"--wmla": wmla, "--max-restarts": max_restarts is not None}
                | {"--hang-timeout": hang_timeout is not None}
                | {"--ready-timeout": ready_timeout is not None, "--no-warm-start": not warm_start}
            )
        options = Options(wmla, command.framework(framework), data_dir, result_dir, output_dir)
        program, how = command.read(program, options)
        where = HostOptions(
            os.environ,
            host_list,
            hostfile,
            script=host_discovery_script,
            slots_per_host=slots_per_host,
        )
        source = hosts.source_of(where, allocation)
        limits = hosts.limits_of(min_np, max_np, source, allocation, where)
        if how is not None and not how.framework.is_elastic:
            limits = Limits(limits.max_np, limits.max_np)
        plan = Plan(
            program=_program(program, how),
            limits=limits,
            paths=RunDir(Path(os.path.abspath(result_dir or output_dir or _new_folder(program)))),
            allocation=hosts.allocation_of(source, limits),
            follow=allocation.absolute() if allocation else None,
            source=source if source is not None and source.may_change else None,
            interface=network_interface,
            remote=Remote(ssh_port, ssh_identity_file),
            start_timeout=start_timeout,
            max_restarts=RESTARTS if max_restarts is None else max_restarts,
            checkpoint_interval=checkpoint_interval,
            keep_checkpoints=keep_checkpoints,
            hang_timeout=hang_timeout,
            ready_timeout=ready_timeout,
            verbose=verbose,
            warm_start=warm_start,
            wmla=how,
            horovodrun=horovodrun,
        )
        if text := hosts.announcement(source, where):
            typer.echo(text, err=True)
        with job.received_signals() as signals:
            outcome = job.run(plan, make_view(view, sys.stdout, sys.stderr), signals)
    except EdtLaunchError as error:
        outcome = Outcome(error.exit_code, f"edt-launch: {error}")
    if outcome.message:
        typer.echo(outcome.message, err=True)
    raise typer.Exit(outcome.exit_code)


def main() -> None:
    """Run the command line."""
    try:
        app(prog_name="edt-launch")
    except Exception as error:  # noqa: BLE001 - the last resort: every other failure has its own exit code
        traceback.print_exc()
        print(f"edt-launch: a mistake in edt-launch itself: {error!r}; please report it", file=sys.stderr)
        sys.exit(ExitCode.INTERNAL)


def _check_horovodrun(others: Mapping[str, bool]) -> None:
    """Refuse options that mean nothing to Horovod's own driver, by whether they are given."""
    given = [option for option, is_given in others.items() if is_given]
    if given:
        names = " and ".join(given)
        raise UsageError(f"leave out {names} with --horovodrun: Horovod's driver has nothing like it")


def _program(words: list[str], how: Wmla | None) -> list[str]:
    """The command that each worker runs, or the driver."""
    first = words[0]
    if how is not None:
        return [sys.executable, "-m", "edt_hvd.wmla.script", *words]
    if first.endswith(".py"):
        if not Path(first).is_file():
            raise UsageError(f"{first} is not a file: give the path of a training script")
        return [sys.executable, *words]
    if shutil.which(first) is None:
        raise UsageError(f"{first}: command not found; give a script (.py) or a command that is in PATH")
    return words


def _new_folder(words: list[str]) -> Path:
    script = next((word for word in words if word.endswith(".py")), words[0])
    return Path("runs") / f"{Path(script).stem}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"


if __name__ == "__main__":
    main()
