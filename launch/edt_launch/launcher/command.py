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
from edt_launch.cluster import devices, static_hosts
from edt_launch.cluster.allocation import Allocation, HostSlots, parse, read
from edt_launch.cluster.discovery_script import Script
from edt_launch.cluster.follower import Limits
from edt_launch.core.errors import AllocationError, EdtLaunchError, ExitCode, UsageError
from edt_launch.core.run_dir import RunDir
from edt_launch.launcher import job
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
        Path | None, typer.Option(help="Run on the hosts of this file: 'host slots=N' or 'host:N' a line.")
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
        if horovodrun:
            _check_horovodrun(
                {"--wmla": wmla, "--max-restarts": max_restarts is not None}
                | {"--hang-timeout": hang_timeout is not None}
                | {"--ready-timeout": ready_timeout is not None, "--no-warm-start": not warm_start}
            )
        options = Options(wmla, command.framework(framework), data_dir, result_dir, output_dir)
        program, how = command.read(program, options)
        discovery = _discovery(host_discovery_script, slots_per_host, max_np)
        chosen = _choose_hosts(host_list, hostfile, allocation, host_discovery_script)
        limits = _limits(min_np, max_np, chosen, allocation)
        if how is not None and not how.framework.is_elastic:
            limits = Limits(limits.max_np, limits.max_np)
        plan = Plan(
            program=_program(program, how),
            limits=limits,
            paths=RunDir(Path(os.path.abspath(result_dir or output_dir or _new_folder(program)))),
            allocation=None if allocation or discovery else _fixed(chosen, limits),
            follow=allocation.absolute() if allocation else None,
            discovery=discovery,
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


def _choose_hosts(
    host_list: str | None, hostfile: Path | None, allocation: Path | None, script: Path | None
) -> tuple[HostSlots, ...] | None:
    """The hosts that the command line names; None if it names none."""
    given = {
        "-H": host_list,
        "--hostfile": hostfile,
        "--allocation": allocation,
        "--host-discovery-script": script,
    }
    named = [option for option, value in given.items() if value is not None]
    if len(named) > 1:
        raise UsageError(f"{' and '.join(named)} exclude one another: give one of them")
    if host_list is not None:
        return static_hosts.parse_hosts(host_list)
    return static_hosts.read_hostfile(hostfile) if hostfile is not None else None


def _discovery(script: Path | None, slots_per_host: int | None, max_np: int | None) -> Script | None:
    """The host-discovery script; None without one."""
    if script is None:
        if slots_per_host is not None:
            raise UsageError("--slots-per-host is for --host-discovery-script: give that, too")
        return None
    if max_np is None:
        raise UsageError("--host-discovery-script: give --max-np, too, as more hosts may come at any time")
    if not script.is_file() or not os.access(script, os.X_OK):
        raise UsageError(f"--host-discovery-script {script} is no program: name one, and chmod +x it")
    return Script(script.absolute(), slots_per_host)


def _limits(
    min_np: int, max_np: int | None, chosen: tuple[HostSlots, ...] | None, allocation: Path | None
) -> Limits:
    if max_np is None and chosen is not None:
        max_np = sum(host.slots for host in chosen)
        default = f"the {max_np} slots of the hosts"
    elif max_np is None:
        max_np = max(devices.this_machine().workers, _slots_in(allocation))
        default = f"--max-np, by default {max_np} here"
    else:
        default = f"--max-np {max_np}"
    if min_np > max_np:
        raise UsageError(f"--min-np {min_np} is more than {default}: lower it or raise the other")
    return Limits(min_np, max_np)


def _slots_in(allocation: Path | None) -> int:
    """Slots in an allocation file at the moment; 0 while it says nothing."""
    try:
        return parse(read(allocation)).slots if allocation else 0
    except (OSError, AllocationError):
        return 0


def _fixed(chosen: tuple[HostSlots, ...] | None, limits: Limits) -> Allocation:
    """The allocation of a job that follows no file."""
    if chosen is None:
        chosen = static_hosts.this_host(devices.this_machine(), limits.max_np)
    allocation = static_hosts.fixed(chosen, limits.max_np)
    if allocation.slots < limits.min_np:
        raise UsageError(
            f"{allocation.slots} slots are fewer than --min-np {limits.min_np}: name more hosts or lower it"
        )
    return allocation


if __name__ == "__main__":
    main()
