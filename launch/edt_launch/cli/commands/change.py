"""``edt set``."""

import sys
import time
from typing import Annotated

import typer

from edt_launch.cli import model
from edt_launch.cli.errors import MistakenError
from edt_launch.cli.screen import has_colours, show, width
from edt_launch.cli.session import AsJson, JobName, connect, print_json
from edt_launch.cli.tables import jobs_table


def change(
    job: JobName,
    least: Annotated[int | None, typer.Option("--min", min=1, help="Workers that it needs at least.")] = None,
    most: Annotated[int | None, typer.Option("--max", min=1, help="Workers that it can use at most.")] = None,
    priority: Annotated[int | None, typer.Option(help="Its tier; higher ones are served first.")] = None,
    weight: Annotated[float | None, typer.Option(help="Of its share, relative to your other jobs.")] = None,
    name: Annotated[str | None, typer.Option(help="Another name.")] = None,
    as_json: AsJson = False,
) -> None:
    """Change a job, also while it runs."""
    options = {"min": least, "max": most, "priority": priority, "weight": weight, "name": name}
    changes = {option: value for option, value in options.items() if value is not None}
    if not changes:
        raise MistakenError(
            "nothing is to be changed", "give one of --min, --max, --priority, --weight, --name"
        )
    service = connect()
    data = service.change(service.resolve(job), changes)
    if as_json:
        print_json(data)
        return
    show(jobs_table([model.job(data)], time.time(), width(), has_colours(sys.stdout)))
    if note := data.get("note"):
        print(note)
