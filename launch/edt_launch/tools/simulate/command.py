"""``edt simulate``: what would have become of a trace of jobs here."""

import dataclasses
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from edt_launch.allocator.model import Host
from edt_launch.cli.errors import MistakenError, RefusedError
from edt_launch.cli.screen import plural
from edt_launch.core.errors import TraceError
from edt_launch.tools.simulate import picture
from edt_launch.tools.simulate.figures import Figures, judge
from edt_launch.tools.simulate.policies import FairShare, Fifo, StrictPriority, Tiresias
from edt_launch.tools.simulate.replay import (
    ROUNDS,
    Live,
    Policy,
    SimulatedJob,
    StuckError,
    Timing,
    machines,
    replay,
)
from edt_launch.tools.simulate.trace import LONGEST, Trace, read

CLASSES = 3
"""Priority classes that users are dealt into where a trace has no priorities."""


class Choice(Enum):
    """Policies that can be replayed."""

    EDT = "edt"
    FIFO = "fifo"
    PRIORITY = "priority"
    TIRESIAS = "tiresias"


def simulate(
    trace: Annotated[
        Path, typer.Argument(metavar="TRACE", help="CSV file with one job a line.", show_default=False)
    ],
    gpus: Annotated[int, typer.Option(min=1, help="GPUs of the cluster.")] = 64,
    gpus_per_host: Annotated[int, typer.Option(min=1, help="GPUs of a host.")] = 4,
    policy: Annotated[
        list[Choice] | None, typer.Option(help="Policy to replay. Repeatable. Default: all.")
    ] = None,
    resize_cost: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=LONGEST,
            help="Seconds without progress at a resize: 5, with --rounds 30.",
        ),
    ] = None,
    start_cost: Annotated[
        float | None,
        typer.Option(min=0, max=LONGEST, help="The same at a start; else as at a resize."),
    ] = None,
    hand_over: Annotated[
        float, typer.Option(min=0, max=LONGEST, help="Seconds until the devices of leaving workers are free.")
    ] = 0.0,
    decision_interval: Annotated[
        float | None,
        typer.Option(min=0.1, max=LONGEST, help="Seconds between decisions: 5, with --rounds 60."),
    ] = None,
    rounds: Annotated[
        bool,
        typer.Option("--rounds", help="Decide in rounds only, as published simulators do, not at events."),
    ] = False,
    adaptive: Annotated[
        bool, typer.Option("--adaptive", help="Jobs adapt their batch size when they are resized.")
    ] = False,
    flat: Annotated[
        bool, typer.Option("--flat", help="Jobs share the cluster directly, not through their users.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option(help="PNG of the allocation over time. Default: TRACE.png in this folder.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object; draws only with --output.")
    ] = False,
) -> None:
    """Replay TRACE through the allocator of the service, and through other policies, and print their figures.

    Exit code 2 when the trace makes no sense, 1 when the cluster is too small for one of its jobs.
    """
    default = ROUNDS if rounds else Timing()
    timing = dataclasses.replace(
        default,
        interval=default.interval if decision_interval is None else decision_interval,
        resize_cost=default.resize_cost if resize_cost is None else resize_cost,
        start_cost=start_cost,
        hand_over=hand_over,
    )
    choices = policy or list(Choice)
    hosts = machines(gpus, gpus_per_host)
    try:
        jobs = read(trace, adaptive)
    except TraceError as error:
        raise MistakenError(str(error)) from None
    _check_sizes(jobs, gpus, choices)
    drawn = None if as_json and output is None else _writable(output or Path(f"{jobs.name}.png"))
    policies, notes = choose(jobs, choices, hosts, timing, by_user=not flat)
    try:
        with _bars(len(jobs.jobs), shown=not as_json) as bar:
            outcomes = [replay(jobs, hosts, each, timing, bar(each.name)) for each in policies]
    except StuckError as error:
        raise RefusedError(str(error), "give it more --gpus") from None
    figures = {outcome.policy: judge(outcome, by_user=not flat) for outcome in outcomes}
    drew = drawn is not None and _draw(outcomes[0], drawn, jobs.name)
    if not as_json:
        _show(jobs, outcomes[0], notes, figures)
        if drew:
            print(f"picture        {drawn}")
        return
    record = {
        "trace": jobs.name,
        "jobs": len(jobs.jobs),
        "gpus": gpus,
        "timing": dataclasses.asdict(timing),
        "notes": notes,
        "policies": {name: dataclasses.asdict(of_policy) for name, of_policy in figures.items()},
    }
    print(json.dumps(record))


def _check_sizes(trace: Trace, gpus: int, choices: Sequence[Choice]) -> None:
    """See that each job fits the cluster, under the chosen policies, before hours are replayed."""
    is_rigid = any(choice is not Choice.EDT for choice in choices)
    for job in trace.jobs:
        need = max(job.min, job.requested if is_rigid else 0)
        if need > gpus:
            what = f"needs {job.min}" if need == job.min else f"requested {job.requested}"
            raise RefusedError(
                f"job {job.id} {what} GPUs, and the cluster has {gpus}", f"give at least --gpus {need}"
            )


def _writable(path: Path) -> Path:
    """The picture's path, in a folder that is there and can be written."""
    if path.is_dir() or not os.access(path.parent, os.W_OK | os.X_OK):
        what = "is a folder" if path.is_dir() else f"{path.parent} is no folder that can be written"
        raise MistakenError(f"{path}: {what}", "name another file with --output")
    return path


def choose(
    trace: Trace, choices: Sequence[Choice], hosts: tuple[Host, ...], timing: Timing, by_user: bool = True
) -> tuple[list[Policy], list[str]]:
    """The chosen policies, and what is assumed or made up about the trace, for people."""
    notes = list(trace.notes)
    classes: dict[str, int] = {}
    if not trace.has_priorities and Choice.PRIORITY in choices:
        users = sorted({job.user for job in trace.jobs})
        classes = {user: -(i % CLASSES) for i, user in enumerate(users)}
        notes.append(
            "strict priority: the trace has no priorities; "
            f"its users are dealt into {CLASSES} classes (synthetic)"
        )

    def priority(entry: Live) -> int:
        return classes.get(entry.job.user, entry.job.priority)

    made: dict[Choice, Callable[[], Policy]] = {
        Choice.EDT: lambda: FairShare(trace, hosts, timing, by_user=by_user),
        Choice.FIFO: lambda: Fifo(hosts),
        Choice.PRIORITY: lambda: StrictPriority(hosts, priority),
        Choice.TIRESIAS: lambda: Tiresias(hosts),
    }
    if any(choice is not Choice.EDT for choice in choices):
        notes.append("FIFO, strict priority and Tiresias-like run every job on exactly the GPUs it requested")
    return [made[choice]() for choice in dict.fromkeys(choices)], notes


@contextmanager
def _bars(jobs: int, shown: bool) -> Iterator[Callable[[str], Callable[[int], None]]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("jobs"))
    console = Console(stderr=True)
    progress = Progress(*columns, TimeRemainingColumn(), console=console, transient=True, disable=not shown)
    with progress:

        def start(name: str) -> Callable[[int], None]:
            task = progress.add_task(name, total=jobs)
            return lambda ended: progress.update(task, completed=ended)

        yield start


ROWS = {
    "mean JCT": "{0.mean_jct:,.0f} s",
    "median JCT": "{0.median_jct:,.0f} s",
    "p99 JCT": "{0.p99_jct:,.0f} s",
    "makespan": "{0.makespan:,.0f} s",
    "finish-time fairness rho, worst": "{0.worst_rho:.2f}",
    "finish-time fairness rho, mean": "{0.mean_rho:.2f}",
    "unfair jobs (rho > 1.05)": "{0.unfair:.1%}",
    "share error": "{0.share_error:.1%}",
    "idle though wanted": "{0.idle:.1%}",
    "resizes per job": "{0.resizes_per_job:.2f}",
    "suspensions per job": "{0.suspensions_per_job:.2f}",
}
"""The lines of the table."""


def _show(trace: Trace, outcome: SimulatedJob, notes: Sequence[str], figures: Mapping[str, Figures]) -> None:
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, soft_wrap=True)
    timing = outcome.timing
    start = timing.resize_cost if timing.start_cost is None else timing.start_cost
    when = "in rounds only" if timing.coalesce is None else "and at every event"
    console.print(f"{trace.name}: {plural(len(trace.jobs), 'job')} on {plural(outcome.gpus, 'GPU')}")
    console.print(
        f"resize cost {timing.resize_cost:g} s, start cost {start:g} s, hand-over {timing.hand_over:g} s, "
        f"decisions every {timing.interval:g} s {when}"
    )
    for note in notes:
        console.print(f"- {note}")
    table = Table("", box=SIMPLE, pad_edge=False)
    for name in figures:
        table.add_column(name, justify="right")
    for label, form in ROWS.items():
        table.add_row(label, *map(form.format, figures.values()))
    console.print(table)


def _draw(outcome: SimulatedJob, path: Path, name: str) -> bool:
    try:
        picture.draw(outcome, path, f"{name} under {outcome.policy}, {outcome.gpus} GPUs")
    except ImportError:
        print("picture        none, because matplotlib is missing: pip install matplotlib", file=sys.stderr)
        return False
    except OSError as error:
        raise MistakenError(f"{path}: {error.strerror}", "name another file with --output") from None
    return True
