"""``edt top``."""

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from edt_launch.cli import model
from edt_launch.cli.configuration import load
from edt_launch.cli.errors import NotAllowedError
from edt_launch.cli.overview import Seen, picture
from edt_launch.cli.refresh import watch_lines, watch_values
from edt_launch.cli.screen import has_colours, show, width
from edt_launch.cli.service import Service
from edt_launch.cli.session import AsJson, connect, print_json


def top(
    once: Annotated[bool, typer.Option("--once", help="Show it once.")] = False,
    as_json: AsJson = False,
) -> None:
    """Watch devices, owners and jobs, until q or Ctrl-C; the letters say which job has which device.

    Goes on when the service is started again. With --json: an object a line, at each change.
    """
    service, url = connect(), load(os.environ).url
    if as_json:
        ask = snapshot(service)
        print_json(ask()) if once else watch_values(ask, "seen")
        return
    look = lines_of(service, url)
    show(look()) if once else watch_lines(look)


def snapshot(service: Service) -> Callable[[], dict[str, Any]]:
    """What is asked of the service for one picture."""

    def ask() -> dict[str, Any]:
        try:
            shares = model.many(service.shares(), "shares")
        except NotAllowedError:
            shares = []
        return {"cluster": service.cluster(), "jobs": list(service.jobs()), "shares": shares}

    return ask


def lines_of(service: Service, url: str) -> Callable[[], Sequence[str]]:
    """The picture of a service that listens at `url`, as lines."""
    ask = snapshot(service)

    def look() -> Sequence[str]:
        return picture(seen(ask(), url, time.time()), width(), has_colours(sys.stdout))

    return look


def seen(data: dict[str, Any], url: str, now: float) -> Seen:
    """A snapshot, parsed."""
    return Seen(
        url,
        now,
        tuple(map(model.host, model.many(data["cluster"], "hosts"))),
        tuple(map(model.job, data["jobs"])),
        tuple(map(model.share, data["shares"])),
    )
