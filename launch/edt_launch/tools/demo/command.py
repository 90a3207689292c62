"""``edt demo``: one elastic job that grows and shrinks while its user watches.

Runs `edt-launch` on a script and plays the part of whatever shares out the machines in real life: it rewrites
the job's allocation file as the training comes along. Everything is read from the job's own event log.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from edt_launch.cluster.local import allocate_here
from edt_launch.cluster.nvidia import gpus_here
from edt_launch.core.files.growing_file import GrowingFile
from edt_launch.core.history.event_codec import events_of
from edt_launch.core.history.job_history import JobHistory, Summary
from edt_launch.core.run_dir import RunDir
from edt_launch.tools.demo import plot

LAUNCHER = (sys.executable, "-P", "-m", "edt_launch.launcher.command")
EXAMPLES = (Path(__file__).with_name("digits.py"), Path(__file__).parents[4] / "examples" / "digits.py")
"""Where the default script is: in an installed package, in a checkout."""

SCRIPT_ARGUMENTS = ("--epochs", "30", "--delay", "0.25")
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
POLL_INTERVAL = 0.1
"""Seconds between two looks at the event log."""


@dataclass(frozen=True)
class Stage:
    """One part of the demo: from `at` (0 to 1, of all optimizer steps) on, `size` workers are asked for."""

    at: float
    size: int


DEMO = (Stage(0.0, 2), Stage(0.25, 4), Stage(0.5, 1), Stage(0.75, 3))


@dataclass(frozen=True)
class DemoProgress:
    """How far the demo is.

    Attributes:
        stage: index of the stage whose size has been asked for.
        size: number of workers that the last step ran on; None before the first.
        done: part of all optimizer steps that is done, 0 to 1.
        accuracy: the last one the script has reported, or None.
    """

    stage: int = 0
    size: int | None = None
    done: float = 0.0
    accuracy: float | None = None


def seen(stage: int, history: JobHistory) -> DemoProgress:
    """How far the demo is in a stage, by what its job has reported."""
    accuracy = history.numbers.get("accuracy", Summary()).last
    if not history.marks:
        return DemoProgress(stage)
    last = history.marks[-1]
    return DemoProgress(stage, last.size, last.step / history.total if history.total else 0.0, accuracy)


def advance(progress: DemoProgress, plan: Sequence[Stage]) -> DemoProgress:
    """The next stage if it is due, else `progress` itself.

    It is due when the training has come that far and was seen to run with the size of the stage before.
    """
    following = progress.stage + 1
    is_settled = progress.size == plan[progress.stage].size
    if following < len(plan) and is_settled and progress.done >= plan[following].at:
        return replace(progress, stage=following)
    return progress


def is_complete(progress: DemoProgress, plan: Sequence[Stage]) -> bool:
    """Whether the last stage has been asked for and seen."""
    return progress.stage == len(plan) - 1 and progress.size == plan[-1].size


def demo(
    script: Annotated[
        Path | None, typer.Argument(metavar="[SCRIPT]", help="Training script. Default: examples/digits.py.")
    ] = None,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="ARGS", help=f"The script's arguments, else {' '.join(SCRIPT_ARGUMENTS)}."),
    ] = None,
    output_dir: Annotated[
        Path | None, typer.Option(help="Folder for logs, events and plot. Default: a new one in runs.")
    ] = None,
) -> None:
    """Train SCRIPT with 2 workers, then 4, then 1, then 3, without stopping it.

    SCRIPT has to report total_steps; loss is for the plot, accuracy for the summary: see examples/digits.py.
    """
    script = script or next(filter(Path.is_file, EXAMPLES))
    if not script.is_file():
        advice = "leave it out to train examples/digits.py"
        raise typer.BadParameter(f"{script} is not a file; {advice}", param_hint="SCRIPT")
    folder = output_dir or Path("runs") / time.strftime(f"demo-%Y%m%d-%H%M%S-{os.getpid()}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise typer.BadParameter(
            f"{folder}: {error.strerror}; name a folder you may write", param_hint="--output-dir"
        ) from None
    exit_code, progress = run([str(script), *(arguments or SCRIPT_ARGUMENTS)], folder)
    if exit_code == 0:
        exit_code = conclude(script.name, folder, progress)
    elif exit_code == 128 + signal.SIGINT and output_dir is None:
        shutil.rmtree(folder, ignore_errors=True)
    raise typer.Exit(exit_code)


def run(
    command: Sequence[str], folder: Path, plan: Sequence[Stage] = DEMO, launcher: Sequence[str] = LAUNCHER
) -> tuple[int, DemoProgress]:
    """Run a job under `launcher` to its end, asking for the plan's sizes as they come due.

    With fewer GPUs than the largest size, the job runs on the CPU.

    Args:
        command: the script and its arguments.
        folder: the job's output directory; the allocation file is made in it.
        plan: the sizes to ask for.
        launcher: command that is `edt-launch` or behaves like it.

    Returns:
        The job's exit code and how far the plan came.
    """
    allocation, log = folder / "allocation", GrowingFile(RunDir(folder).events)
    largest = max(stage.size for stage in plan)
    gpus = gpus_here(os.environ)
    devices = gpus if len(gpus) >= largest else ()
    allocate_here(allocation, 1, plan[0].size, devices)
    options = ["--min-np=1", f"--max-np={largest}", f"--allocation={allocation}", f"--output-dir={folder}"]
    progress, history = DemoProgress(), JobHistory()
    environment = os.environ if devices else os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    with job([*launcher, *options, *command], environment) as child:
        running = True
        while running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(POLL_INTERVAL)
            running = child.returncode is None
            for event in events_of(log.lines()):
                history.observe(event)
            progress = seen(progress.stage, history)
            following = advance(progress, plan)
            if following is not progress and running:
                allocate_here(allocation, following.stage + 1, plan[following.stage].size, devices)
                progress = following
    code = child.returncode
    return (code if code >= 0 else 128 - code), progress


def conclude(name: str, folder: Path, progress: DemoProgress) -> int:
    """Draw the plot and print what came out; returns the exit code."""
    if progress.accuracy is not None:
        print(f"test accuracy  {progress.accuracy:.3f}")
    picture = folder / "plot.png"
    lines = chain.from_iterable(GrowingFile(RunDir(folder).events).looks())
    points = plot.curve(events_of(lines))
    try:
        plot.draw(points, picture, title=f"{name}: one training, {len(DEMO)} sizes")
        print(f"plot           {picture}")
    except ImportError:
        print("plot           none, because matplotlib is missing: pip install matplotlib")
    except ValueError as error:
        print(f"plot           none: {error}")
    print(f"events, logs   {folder}")
    if not is_complete(progress, DEMO):
        print(
            f"The training ended before it had run with {DEMO[-1].size} workers: it is too short for this "
            "machine. Give the script more epochs or a longer --delay.",
            file=sys.stderr,
        )
        return 1
    return 0


@contextlib.contextmanager
def job(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A child process in a process group of its own, that gets the signals which this process is sent.

    In its own group a Ctrl-C reaches it once, from here. It has ended when the context is left.
    """
    child: subprocess.Popen[bytes] | None = None
    received: list[int] = []

    def forward(number: int, _: object) -> None:
        received.append(number)
        if child is not None and child.poll() is None:
            child.send_signal(number)

    previous = {number: signal.signal(number, forward) for number in FORWARDED}
    child = subprocess.Popen(command, env=environment, process_group=0)
    for number in received:  # sent while the child was being started
        child.send_signal(number)
    try:
        yield child
    except BaseException:
        child.terminate()
        raise
    finally:
        child.wait()
        for number, handler in previous.items():
            signal.signal(number, handler)
