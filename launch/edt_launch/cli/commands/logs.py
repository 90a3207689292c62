"""``edt logs``."""

import json
import sys
from collections.abc import Iterable
from typing import Annotated

import typer

from edt_launch.cli.job_output import RANK, output
from edt_launch.cli.screen import has_colours, note, paint
from edt_launch.cli.session import AsJson, JobName, connect

COLOURS = ("cyan", "green", "yellow")


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
    lines = output(service, job_id, rank=rank, follow=follow, tail=tail, told=told)
    print_lines(lines, as_json, rank=rank, flush=follow)


def told(text: str) -> None:
    """Say what happens to the connection."""
    note(f"edt: {text}")


def print_lines(lines: Iterable[str], as_json: bool, *, rank: int | None = None, flush: bool = True) -> None:
    """Print a job's output: with the ranks in colour, or as JSON objects; `rank` is the one asked for."""
    colours = has_colours(sys.stdout)
    for line in lines:
        print(_object(line, rank) if as_json else _painted(line, colours), flush=flush)


def _object(line: str, rank: int | None) -> str:
    label = RANK.match(line) if rank is None else None
    source = label[1] if label else None if rank is None else str(rank)
    return json.dumps({"rank": source, "text": line[label.end() :] if label else line})


def _painted(line: str, colours: bool) -> str:
    label = RANK.match(line) if colours else None
    if label is None:
        return line
    style = COLOURS[int(label[1]) % len(COLOURS)] if label[1].isdecimal() else "dim"
    return paint(line[: label.end() - 1], style, colours) + line[label.end() - 1 :]
