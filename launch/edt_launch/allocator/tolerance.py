"""How far a job's size may be off its fair share to spare others a resize.

An owner's number is put right to the GPU. Among the jobs of one owner that would cost a resize of almost all
of them whenever one starts or ends, for a GPU each. So few others serve a job instead, as long as everybody
stays within a factor of its share; whoever is behind by as much as makes a resize worth it is put right when
that has lasted for many times what a resize costs.
"""

from math import ceil, floor

from edt_launch.allocator.filling import SLACK
from edt_launch.allocator.model import Options
from edt_launch.allocator.work import Work


def band(work: Work, index: int) -> tuple[int, int]:
    """Fewest and most workers that a job may be put to, or left with; its whole number is among them."""
    due, share, tolerance = work.target[index], work.share[index], work.cluster.options.tolerance
    if work.jobs[index].allowed is not None:
        return due, due
    middle = share if abs(share - due) < 1 else due  # by speed-up a job may be due more than its share
    low, high = ceil(middle / tolerance - SLACK), floor(middle * tolerance + SLACK)
    return max(work.low[index], min(due, low)), min(work.high[index], max(due, high))


def is_behind(work: Work, index: int, size: int) -> bool:
    """Whether a size is worth putting right once it has lasted."""
    least = work.share[index] * (1 - work.cluster.options.least_change)
    return size < min(work.target[index], least)


def patience(options: Options, resize_cost: float) -> float:
    """Seconds for which a job may be behind."""
    return max(options.imbalance_time, options.patience_costs * resize_cost)
