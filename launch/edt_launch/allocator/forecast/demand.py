"""How many more devices jobs could use."""

from collections.abc import Sequence
from dataclasses import replace

from edt_launch.allocator.decide import target
from edt_launch.allocator.model import Cluster, Host, Job
from edt_launch.allocator.turns import Turns
from edt_launch.allocator.work import gather


def demand(now: float, cluster: Cluster, jobs: Sequence[Job]) -> int:
    """The devices that jobs would have if there were enough of them, less those that there are.

    Limits of owners, minimums, maximums and measured speedups count as in `decide`.
    """
    lacking = sum(job.max for job in jobs) - cluster.size
    if lacking <= 0:
        return 0
    more = Host("~", tuple(map(str, range(lacking))))  # no host has such a name
    work = gather(now, replace(cluster, hosts=(*cluster.hosts, more)), jobs)
    target(work, Turns(work))
    return max(0, sum(work.target) - cluster.size)
