"""``edt top``."""

import os
import time
from collections.abc import Sequence
from typing import Annotated

from typer import Option

from edt_launch.cli import model
from edt_launch.cli.client.configuration import load
from edt_launch.cli.client.service import Json, Service
from edt_launch.cli.errors import NotAllowedError
from edt_launch.cli.screen import show, terminal
from edt_launch.cli.session import AsJson, connect, print_json
from edt_launch.cli.terminal.overview import Seen, picture
from edt_launch.cli.terminal.refresh import watch_lines, watch_values


def top(
    once: Annotated[bool, Option("--once", help="Print it once and exit.")] = False, as_json: AsJson = False
) -> None:
    """Watch devices, owners and jobs, until q or Ctrl-C; the letters say which job has which device.

    Goes on when the service is started again. With --json: an object a line, at each change.
    """
    service, url = connect(), load(os.environ).url

    def ask() -> Json:
        return snapshot(service)

    def look() -> Sequence[str]:
        return picture(seen(ask(), url), *terminal())

    if as_json:
        print_json(ask()) if once else watch_values(ask, "seen")
    else:
        show(look()) if once else watch_lines(look)


def snapshot(service: Service) -> Json:
    """What is asked of the service for one picture."""
    try:
        shares = model.many(service.call("GET", "shares"), "shares")
    except NotAllowedError:
        shares = []
    return {"cluster": service.call("GET", "cluster"), "jobs": list(service.jobs()), "shares": shares}


def seen(data: Json, url: str) -> Seen:
    """A snapshot of the service that listens at `url`, parsed."""
    return Seen(
        url,
        time.time(),
        tuple(map(model.host, model.many(data["cluster"], "hosts"))),
        tuple(map(model.job, data["jobs"])),
        tuple(map(model.share, data["shares"])),
    )
