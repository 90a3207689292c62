"""What the commands have in common: the service, options, completion, and how they answer."""

import json
import os
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer import Argument, Option

from edt_launch.cli.client.configuration import load
from edt_launch.cli.client.service import Service
from edt_launch.cli.client.transport import Http
from edt_launch.cli.errors import ClientError
from edt_launch.cli.model import ENDED, job
from edt_launch.cli.screen import note, show

COMPLETION_TIMEOUT = 1.0  # seconds that a shell may wait for the ids of jobs


def connect(timeout: float = 30.0) -> Service:
    """The service that the environment and the files name; nothing is asked yet."""
    return Service(Http(load(os.environ), timeout))


def print_json(data: Any) -> None:
    """Print an answer as JSON."""
    print(json.dumps(data, indent=2))


def answer(data: Any, as_json: bool, lines: Callable[[], Sequence[str]]) -> None:
    """Print what was asked for."""
    print_json(data) if as_json else show(lines())


def confirm(data: Any, as_json: bool, remark: str) -> None:
    """Say what has been done, on standard error unless JSON is wanted."""
    print_json(data) if as_json else note(remark)


def group(**settings: Any) -> typer.Typer:
    """A command that has commands of its own."""
    return typer.Typer(
        add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, **settings
    )


def complete_job(incomplete: str) -> list[tuple[str, str]]:
    """Ids of jobs that begin so, for the shell; none when the service cannot be asked."""
    return _completed(incomplete, frozenset())


def complete_live_job(incomplete: str) -> list[tuple[str, str]]:
    """Ids of jobs that have not ended."""
    return _completed(incomplete, ENDED)


def complete_host(incomplete: str) -> list[tuple[str, str]]:
    """Names of hosts that begin so."""
    try:
        hosts = connect(COMPLETION_TIMEOUT).hosts()
    except ClientError:
        return []
    return [(host.name, host.state) for host in hosts if host.name.startswith(incomplete)]


def _completed(incomplete: str, without: frozenset[str]) -> list[tuple[str, str]]:
    try:
        jobs = list(map(job, connect(COMPLETION_TIMEOUT).jobs()))
    except ClientError:
        return []
    return [
        (job.id, f"{job.name} ({job.owner}, {job.state})")
        for job in jobs
        if job.id.startswith(incomplete) and job.state not in without
    ]


def _also_above(context: typer.Context, as_json: bool) -> bool:
    """Let `edt users --json list` mean what `edt users list --json` does: commands inherit `obj`."""
    context.obj = as_json or bool(context.obj)
    return bool(context.obj)


AsJson = Annotated[bool, Option("--json", help="Print JSON, also for errors.", callback=_also_above)]
JobName = Annotated[
    str,
    Argument(metavar="JOB", help="Id, beginning of the id, or name.", autocompletion=complete_job),
]
LiveJobs = Annotated[
    list[str],
    Argument(metavar="JOB...", help="Ids, beginnings of ids, or names.", autocompletion=complete_live_job),
]
