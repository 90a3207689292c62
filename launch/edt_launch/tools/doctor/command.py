"""``edt doctor``: what is on this machine, and what to do about what is not.

A check is a function of a `Machine` that returns a `Finding`. With hosts, `reach` finds out which of them
reach each other.
"""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from edt_launch.cli.errors import MistakenError
from edt_launch.core.command_line import with_options
from edt_launch.core.errors import EdtLaunchError
from edt_launch.core.run_options import PortOptions, RunOptions
from edt_launch.core.system import current_directory
from edt_launch.launcher.transports.ssh import SshOptions
from edt_launch.tools.doctor import software, surroundings
from edt_launch.tools.doctor.determinism import check_determinism
from edt_launch.tools.doctor.finding import Finding
from edt_launch.tools.doctor.machine import Machine

CHECKS: tuple[Callable[[Machine], Finding], ...] = (
    software.check_interpreter,
    software.check_compiler,
    software.check_make,
    software.check_cmake,
    software.check_mpi,
    software.check_horovod,
    software.check_torch,
    software.check_torchvision,
    software.check_native,
    check_determinism,
    surroundings.check_devices,
    surroundings.check_network,
    software.check_ray,
    surroundings.check_service,
)


def examine(machine: Machine) -> list[Finding]:
    """Run all checks, the slow ones beside each other, and return their findings in order."""
    with ThreadPoolExecutor(max_workers=4) as pool:
        return list(pool.map(lambda check: check(machine), CHECKS))


@with_options(SshOptions, PortOptions)
def doctor(
    hosts: Annotated[
        str | None,
        typer.Argument(metavar="[HOSTS|SCRIPT.PY]", help="Instead: node1,node2,..., a host file, a script."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of lines.")] = False,
    *groups: object,
) -> None:
    """Check this machine, the environment and the service; or which HOSTS of a job reach each other.

    Of SCRIPT.PY it shows what to change before the script is resized.

    Exit code 1 when a check fails.
    """
    if current_directory.is_deleted():  # where nothing that is tried would run
        raise MistakenError(current_directory.DELETED, current_directory.ADVICE)
    if hosts is None:
        raise typer.Exit(report(Machine(), as_json=as_json))
    if hosts.endswith(".py"):
        advise(Path(hosts), as_json=as_json)
        return
    from edt_launch.tools.doctor import reach

    try:
        found = reach.examine(reach.named(hosts), RunOptions(groups=groups))
    except EdtLaunchError as error:
        raise MistakenError(f"edt doctor {hosts}: {error}") from None
    print(json.dumps(found.as_dict(), indent=2) if as_json else found.table)
    raise typer.Exit(not found.is_ok)


def advise(script: Path, *, as_json: bool) -> None:
    """Print what a script should have for resizes, and has not; as JSON, ``{"advice": [text]}``.

    Raises:
        MistakenError: it cannot be read.
    """
    from edt_launch.launcher.programs.kinds import kinds

    try:
        source = script.read_text(errors="replace")
    except OSError as error:
        raise MistakenError(f"edt doctor {script}: {error.strerror}; give the path of a script") from None
    advice = [text for kind in kinds() for text in kind.advise(source)]
    if as_json:
        print(json.dumps({"advice": advice}, indent=2))
    else:
        print(*advice or [f"{script}: nothing to change is known"], sep="\n")


def report(machine: Machine, *, as_json: bool) -> int:
    """Print the findings and return the exit code: 1 when a check failed, otherwise 0.

    As JSON they are ``{"ok": bool, "checks": [{"name", "status", "finding", "fix"}]}``.
    """
    findings = examine(machine)
    failed = any(finding.status == "fail" for finding in findings)
    if as_json:
        print(json.dumps({"ok": not failed, "checks": [asdict(finding) for finding in findings]}, indent=2))
    else:
        for finding in findings:
            fix = f" -> {finding.fix}" if finding.fix else ""
            print(f"{finding.status:4}  {finding.name:11}  {finding.finding}{fix}")
    return int(failed)
