"""``edt logs``."""

import json
import sys
from typing import Annotated

import typer

from edt_launch.cli.job_output import RANK, output
from edt_launch.cli.screen import has_colours, note, paint
from edt_launch.cli.session import AsJson, JobName, connect

COLOURS = ("cyan", "green", "yellow")
"""Of the ranks, in turn."""


def logs(
    job: JobName,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job ends.")] = False,
    rank: Annotated[int | None, typer.Option(min=0, help="Only this worker's lines.")] = None,
    tail: Annotated[
        int | None, typer.Option("--tail", "-n", min=0, help="Only so many of the last lines.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print what a job's workers print, with the rank in front of each line.

    Following survives resizes, and a service that is started again.
    """
    service = connect()
    job_id = service.resolve(job)
    colours = has_colours(sys.stdout)
    lines = output(
        service, job_id, rank=rank, follow=follow, tail=tail, told=lambda text: note(f"edt: {text}")
    )
    for line in lines:
        print(as_object(line, rank) if as_json else painted(line, colours), flush=follow)


def as_object(line: str, rank: int | None) -> str:
    """A line as a JSON object."""
    found = RANK.match(line) if rank is None else None
    source = found[1] if found else None if rank is None else str(rank)
    return json.dumps({"rank": source, "text": line[found.end() :] if found else line})


def painted(line: str, colours: bool) -> str:
    """The line with its rank in colour."""
    found = RANK.match(line) if colours else None
    if found is None:
        return line
    style = COLOURS[int(found[1]) % len(COLOURS)] if found[1].isdecimal() else "dim"
    return paint(line[: found.end() - 1], style, colours) + line[found.end() - 1 :]
