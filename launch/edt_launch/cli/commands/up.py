"""``edt up``."""

import sys
import time
from collections.abc import Sequence
from typing import Annotated

import typer

from edt_launch.cli import model
from edt_launch.cli.commands.top import seen, snapshot
from edt_launch.cli.errors import ExitCode, MistakenError
from edt_launch.cli.model import Job
from edt_launch.cli.overview import picture
from edt_launch.cli.refresh import watch_lines
from edt_launch.cli.screen import has_colours, note, show, width
from edt_launch.cli.session import AsJson, print_json
from edt_launch.cli.trial import Trial, trial

INTERVAL = 0.5
"""Seconds between two looks where there is no terminal."""


def up(
    demo: Annotated[bool, typer.Option("--demo", help="Yes, the demonstration.")] = False,
    slots: Annotated[int, typer.Option(min=1, help="Workers that the service may run at a time.")] = 4,
    as_json: AsJson = False,
) -> None:
    """Start a service in a temporary folder, submit a job each for two users, show edt top until they end.

    Nothing remains: q and Ctrl-C, too, end the jobs and the service and remove the folder.
    """
    if not demo:
        raise MistakenError("edt up needs --demo", "'edt serve' runs a service for good")
    note(f"starting a service with {slots} CPU slots ...")
    with trial(slots) as running:
        running.submit()
        note("ada and bob have submitted a job each; Ctrl-C ends everything")
        is_done = _show(running) if sys.stdout.isatty() else _tell(running)
        jobs = _jobs(running)
        if as_json:
            print_json(
                {"jobs": [running.service.job(job.id) | {"sizes": running.sizes[job.id]} for job in jobs]}
            )
        else:
            show(running.summary(jobs))
        for job in jobs:
            if is_done and job.state == "failed":
                note(f"{job.id}: {job.failure or job.reason or 'failed'}")
                show([*running.service.logs(job.id, rank=None, follow=False, tail=20).lines()])
        if not is_done:
            note("ending the jobs and the service ...")
    if not is_done:
        raise typer.Exit(ExitCode.INTERRUPTED)
    raise typer.Exit(ExitCode.SUCCESS if all(job.state == "succeeded" for job in jobs) else ExitCode.FAILED)


def _jobs(running: Trial) -> list[Job]:
    return [model.job(data) for data in running.service.jobs() if data.get("id") in running.jobs.values()]


def _show(running: Trial) -> bool:
    """Show the picture until all jobs have ended, or Ctrl-C; says which of them it was."""
    ask = snapshot(running.service)
    jobs: Sequence[Job] = ()

    def look() -> Sequence[str]:
        nonlocal jobs
        picture_of = seen(ask(), running.configuration.url, time.time())
        jobs = picture_of.jobs
        running.note(jobs)
        return picture(picture_of, width(), has_colours(sys.stdout))

    return watch_lines(look, until=lambda: running.finished(jobs))


def _tell(running: Trial) -> bool:
    """Tell what happens, where there is no terminal to show it."""
    while True:
        jobs = _jobs(running)
        for line in running.note(jobs):
            note(line)
        if running.finished(jobs):
            return True
        time.sleep(INTERVAL)
