"""``edt ps``."""

import sys
import time
from typing import Annotated, Any

import typer

from edt_launch.cli import model
from edt_launch.cli.screen import has_colours, show, width
from edt_launch.cli.session import AsJson, connect, print_json
from edt_launch.cli.tables import jobs_table


def ps(
    everything: Annotated[bool, typer.Option("--all", "-a", help="Also those that ended long ago.")] = False,
    state: Annotated[str | None, typer.Option(help="Only jobs in this state, such as running.")] = None,
    owner: Annotated[str | None, typer.Option(help="Only this user's jobs.")] = None,
    mine: Annotated[bool, typer.Option("--mine", "-m", help="Only your own jobs.")] = False,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Keep showing them, until q or Ctrl-C.")
    ] = False,
    only_ids: Annotated[bool, typer.Option("--quiet", "-q", help="Print ids only.")] = False,
    as_json: AsJson = False,
) -> None:
    """List live jobs, and those that ended in the last hour.

    SIZE is the number of workers, OF what a job may have; 2→4 is a change under way.
    """
    service = connect()
    if mine:
        owner = str(service.about()["user"])

    def ask() -> list[dict[str, Any]]:
        return list(service.jobs(everything=everything, state=state, owner=owner))

    def look() -> list[str]:
        jobs = [model.job(data) for data in ask()]
        if only_ids:
            return [job.id for job in jobs]
        if not jobs and (state or owner):
            return ["no such jobs" if everything else "no such jobs; those that ended long ago: edt ps --all"]
        return jobs_table(jobs, time.time(), width(), has_colours(sys.stdout))

    if watch:
        from edt_launch.cli.refresh import watch_lines, watch_values

        if as_json:
            watch_values(ask, "jobs")
        else:
            watch_lines(look)
    elif as_json:
        print_json({"jobs": ask()})
    else:
        show(look())
