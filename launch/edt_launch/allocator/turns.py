"""How long jobs run, and wait, where not all of their minimums fit and they take turns.

A suspension costs a start. So a turn is many times as long as a start takes, and it gets longer with what the
job has had: it gives its place to a suspended one once it has had half as much again as that. A job that
needs ten times as long is thus suspended a few times more, where turns of one length would suspend it ten
times as often, and nobody has to know how long it needs (as with the queues of Tiresias; Gu et al., NSDI
2019). In the same way a job may be kept waiting for longer, the longer it has run.
"""

from functools import cached_property
from math import ceil

from edt_launch.allocator.model import Job
from edt_launch.allocator.usage import enter, served
from edt_launch.allocator.work import Work


class Turns:
    """Whose turn it is in one decision, and for how long.

    Attributes:
        entered: virtual time at which each job has entered, by its id.
        clock: the one at which newcomers enter.
    """

    def __init__(self, work: Work) -> None:
        self._work = work
        self.entered, self.clock = enter(work)

    @cached_property
    def _served(self) -> list[float]:
        return served(self._work)

    @cached_property
    def _crowding(self) -> dict[str, int]:
        return crowding(self._work)

    def virtual_time(self, index: int) -> float:
        """Seconds of its minimum that a job has had, since the clock of all jobs began."""
        return self.entered[self._work.ids[index]] + self._served[index]

    def has_run(self, index: int) -> bool:
        """Whether a job runs, or ever has."""
        job = self._work.jobs[index]
        return job.started is not None or job.usage.service > 0

    def turn(self, index: int) -> float:
        """Seconds of its minimum by which a job has to be ahead of a suspended one to give it its place."""
        options, job = self._work.cluster.options, self._work.jobs[index]
        return max(
            options.turn, options.turn_costs * job.start_cost, options.turn_growth * self._served[index]
        )

    def longest_wait(self, index: int) -> float:
        """Seconds after which a waiting job gets a reservation: twice its turn at least if it has run."""
        times = max([self._crowding[node.name] for node in self._work.homes[index].path])
        longest = self._work.cluster.options.longest_wait
        return times * (max(longest, 2 * self.turn(index)) if self.has_run(index) else longest)


def protected(work: Work, job: Job) -> float:
    """Seconds for which a job keeps its minimum once it has started."""
    return max(job.protected, work.cluster.options.protected_costs * job.start_cost)


def is_protected(work: Work, index: int) -> bool:
    """Whether a job keeps its minimum because it has started a short time ago."""
    job = work.jobs[index]
    return work.runs[index] and (job.started is None or work.now - job.started < protected(work, job))


def is_resting(work: Work, job: Job) -> bool:
    """Whether a job was suspended so short a time ago that none is suspended for it."""
    since = work.cluster.memory.suspended.get(job.id)
    return since is not None and work.now - since < protected(work, job)


def crowding(work: Work) -> dict[str, int]:
    """How many times the minimums below each owner fill what it may have, rounded up, by its name."""
    needed: list[float] = [*work.sums(work.low)]
    times = {}
    for node in reversed(work.nodes):
        need = needed[node.position]
        times[node.name] = max(1, ceil(need / max(1.0, node.limit)))
        if node.parent is not None:
            needed[node.parent.position] += min(need, node.limit)
    return times
