"""``edt checkpoints``."""

import sys
import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from edt_launch.cli import model
from edt_launch.cli.errors import MistakenError
from edt_launch.cli.fetching import STANDARD_OUTPUT, save
from edt_launch.cli.screen import Column, has_colours, moment, note, show, size, table, visible, width
from edt_launch.cli.session import AsJson, JobName, connect, print_json


def checkpoints(
    job: JobName,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Fetch one into this file; - for standard output.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Which one to fetch, else the newest.")] = None,
    as_json: AsJson = False,
) -> None:
    """List a job's checkpoints; with --output, fetch one as a tar.gz."""
    service = connect()
    job_id = service.resolve(job)
    answer = service.checkpoints(job_id)
    found = model.many(answer, "checkpoints")
    if output is None and name is not None:
        raise MistakenError(f"--name {name}: into which file?", "give --output, too")
    if output is None:
        print_json(answer) if as_json else show(_listed(found))
        return
    if not found:
        raise MistakenError(f"{job_id} has no checkpoint")
    chosen = name or str(found[-1].get("name"))
    save(service.checkpoint(job_id, chosen), output)
    if output == STANDARD_OUTPUT:
        return
    if as_json:
        print_json({"job": job_id, "checkpoint": chosen, "file": output})
    else:
        note(f"{job_id}: {chosen} is in {output}")


def _listed(found: Sequence[Mapping[str, Any]]) -> list[str]:
    if not found:
        return ["no checkpoints"]
    heads = (Column("NAME"), Column("STEP", right=True), Column("SIZE", right=True), Column("MADE"))
    now = time.time()
    rows = [
        (
            visible(one.get("name")),
            str(one.get("step")),
            size(one.get("size") or 0),
            moment(one.get("time"), now),
        )
        for one in found
    ]
    return table(heads, rows, width(), has_colours(sys.stdout))
