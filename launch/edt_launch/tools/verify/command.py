"""The command ``edt verify``."""

import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, TextIO

import typer

from edt_launch.cluster.nvidia import gpus_here
from edt_launch.core.errors import EdtLaunchError, ExitCode, RunError, UsageError
from edt_launch.launcher.runs import job
from edt_launch.tools.verify.causes import Verdict
from edt_launch.tools.verify.causes import verdict as judge
from edt_launch.tools.verify.records import LENGTH, Difference, RecordedRun, first_difference
from edt_launch.tools.verify.report import as_data, describe, wrapped
from edt_launch.tools.verify.runs import InterruptedRunError, Runner
from edt_launch.tools.verify.schedules import LEAST_STEPS, Schedule, resizing
from edt_launch.tools.verify.traces import Finding, compare

DIFFER = 1
"""Exit code when the bits differ."""


def verify(
    script: Annotated[Path, typer.Argument(metavar="SCRIPT.PY", help="Training script.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="ARGS", help="Arguments of the script.")
    ] = None,
    steps: Annotated[int, typer.Option(min=LEAST_STEPS, help="Steps (commits) of a run.")] = 6,
    sizes: Annotated[
        str, typer.Option("--np", metavar="N,N,...", help="Numbers of workers; the first one runs twice.")
    ] = "1,2,3",
    schedules: Annotated[int, typer.Option(min=0, help="Number of runs that are resized.")] = 2,
    seed: Annotated[int, typer.Option(help="Seed for the choice of sizes.")] = 0,
    timeout: Annotated[float, typer.Option(min=1, help="Time limit of a run, in seconds.")] = 300.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object as the result.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the runs' logs and records.")] = False,
) -> None:
    """Run SCRIPT.PY with several numbers of workers, and resized; say whether the bits agree.

    If not: which parameter or buffer differs first, at which step, and the likely cause.
    Exit codes: 0 the bits agree, 1 they differ, 2 usage, 3 a run failed, hung or recorded nothing,
    129, 130, 143 ended by SIGHUP, Ctrl-C, SIGTERM.
    """
    folder = Path(tempfile.mkdtemp(prefix="edt-verify-"))
    progress = sys.stderr if as_json else sys.stdout
    try:
        numbers = _numbers(sizes)
        with job.received_signals() as signals:
            _check(str(script))
            gpus, largest = gpus_here(os.environ), max(numbers)
            devices = gpus[:largest] if len(gpus) >= largest else ()
            program = [str(script), *(arguments or [])]
            runner = Runner(program, folder, largest, steps, timeout, signals, devices)
            verdict = _examine(runner, numbers, schedules, seed, progress)
    except InterruptedRunError as ended:
        _leave(folder, keep)
        raise typer.Exit(ended.exit_code) from None
    except EdtLaunchError as error:
        failed = error.exit_code is not ExitCode.USAGE
        typer.echo(wrapped(f"edt verify: {error}"), err=True)
        if as_json and failed:
            print(json.dumps({"agree": None, "error": str(error), "logs": str(folder)}))
        _leave(folder, keep or failed)
        raise typer.Exit(error.exit_code) from None
    print(json.dumps(as_data(verdict)) if as_json else f"\n{describe(verdict)}")
    _leave(folder, keep)
    raise typer.Exit(0 if verdict.agree else DIFFER)


def _numbers(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and 1 <= int(part) <= 1024 for part in parts):
        raise UsageError(f"--np {text}: expected numbers of workers from 1 to 1024, such as 1,2,3")
    return tuple(dict.fromkeys(map(int, parts)))


def _check(script: str) -> None:
    if script.startswith("-"):  # unknown options are let through, for the script's sake
        raise UsageError(f"there is no option {script}; `edt verify --help` lists the options")
    if not script.endswith(".py") or not Path(script).is_file():
        raise UsageError(f"{script} is not a Python file: give the path of a training script (.py)")


def _leave(folder: Path, keep: bool) -> None:
    if keep:
        typer.echo(f"logs and records: {folder}", err=True)
    else:
        shutil.rmtree(folder, ignore_errors=True)


def _examine(runner: Runner, sizes: tuple[int, ...], count: int, seed: int, progress: TextIO) -> Verdict:
    reference = _shown(runner, Schedule(sizes[:1]), progress)
    if reference.steps < LEAST_STEPS and count:
        print(f"  too short to be resized; it needs {LEAST_STEPS} steps", file=progress)
    runs = [reference]
    again, others = (Schedule(sizes[:1]), " again"), [(Schedule((size,)), "") for size in sizes[1:]]
    resized = [(schedule, "") for schedule in resizing(seed, count, sizes, reference.steps)]
    for schedule, suffix in (again, *others, *resized):  # the more alike the earlier: that tells causes best
        if first_difference(runs) is not None:
            break
        runs.append(_shown(runner, schedule, progress, suffix=suffix))
    difference = first_difference(runs)
    if difference is None or difference.step == 0 or difference.kind == LENGTH:
        return judge(runs)
    try:
        finding = _trace(runner, difference, progress)
    except RunError as error:
        typer.echo(wrapped(f"edt verify: no trace of the operators: {error}"), err=True)
        finding = None
    return judge(runs, finding)


def _trace(runner: Runner, difference: Difference, progress: TextIO) -> Finding | None:
    """Where the two runs that differ part, from two more with the operators of that step traced."""
    step, suffix = difference.step, f", step {difference.step} traced"
    reference = _shown(runner, difference.reference.schedule, progress, step, suffix)
    if difference.is_of_workers:
        return compare(reference.operators, reference.operators, difference.rank)
    again = " again" if difference.is_repetition else ""
    run = _shown(runner, difference.run.schedule, progress, step, f"{again}{suffix}")
    return compare(reference.operators, run.operators, difference.rank)


def _shown(
    runner: Runner, schedule: Schedule, progress: TextIO, traced: int = 0, suffix: str = ""
) -> RecordedRun:
    name = f"{schedule}{suffix}"
    began = time.monotonic()
    print(f"  {name:<34}", end="", flush=True, file=progress)
    try:
        run = runner.run(name, schedule, traced)
    except BaseException:
        print(file=progress)
        raise
    print(f"{run.steps} steps {time.monotonic() - began:7.1f} s", flush=True, file=progress)
    return run
