"""``edt show``."""

import sys
import time

from edt_launch.cli import model
from edt_launch.cli.screen import has_colours, width
from edt_launch.cli.screen import show as show_lines
from edt_launch.cli.session import AsJson, JobName, connect, print_json
from edt_launch.cli.tables import job_lines


def show(job: JobName, as_json: AsJson = False) -> None:
    """Show everything about a job."""
    service = connect()
    data = service.job(service.resolve(job))
    if as_json:
        print_json(data)
        return
    show_lines(job_lines(model.job(data), time.time(), width(), has_colours(sys.stdout)))
