"""``edt results``."""

from typing import Annotated

import typer

from edt_launch.cli.fetching import STANDARD_OUTPUT, save
from edt_launch.cli.screen import note
from edt_launch.cli.session import AsJson, JobName, connect, print_json


def results(
    job: JobName,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="The file, else JOB-results.tar.gz; - for standard output."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fetch what a job has made, and its logs, as a tar.gz; while it runs, what is there by now."""
    service = connect()
    job_id = service.resolve(job)
    path = output or f"{job_id}-results.tar.gz"
    save(service.results(job_id), path)
    if path == STANDARD_OUTPUT:
        return
    if as_json:
        print_json({"job": job_id, "file": path})
    else:
        note(f"{job_id}: its results are in {path}")
