"""What looks after a job while its program runs: the monitor, the allocation, the signals."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from edt_launch.cluster.network import HostChecker
from edt_launch.launcher.allocations import Allocations
from edt_launch.launcher.job_monitor import JobMonitor
from edt_launch.launcher.programs.program import Job
from edt_launch.launcher.termination import Listen


@dataclass(frozen=True)
class Supervision:
    """What looks after a job.

    Attributes:
        monitor: takes in what happens.
        allocations: where the job runs.
        hosts: looks at hosts.
        listen: gives the signals that have come.
    """

    monitor: JobMonitor
    allocations: Allocations
    hosts: HostChecker
    listen: Listen


@contextlib.contextmanager
def supervised(job: Job) -> Iterator[Supervision]:
    """Look after a job; in the end its view shows the last of it, and its logs are complete."""
    hosts = HostChecker()
    monitor = JobMonitor(job.plan, job.view, job.log)
    with (
        contextlib.closing(monitor),
        contextlib.closing(Allocations(job.plan, monitor, hosts)) as allocations,
    ):
        yield Supervision(monitor, allocations, hosts, job.listen)
