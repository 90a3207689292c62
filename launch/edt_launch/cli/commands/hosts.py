"""``edt hosts``."""

import sys

from edt_launch.cli import model
from edt_launch.cli.screen import has_colours, show, width
from edt_launch.cli.session import AsJson, connect, print_json
from edt_launch.cli.tables import hosts_table


def hosts(as_json: AsJson = False) -> None:
    """List machines, their devices, and the jobs that have them."""
    service = connect()
    if as_json:
        print_json(service.cluster())
        return
    jobs = {job.id: job for job in map(model.job, service.jobs())}
    show(hosts_table(service.hosts(), jobs, width(), has_colours(sys.stdout)))
