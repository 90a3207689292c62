"""How long jobs run, and wait, where not all of their minimums fit and they take turns.

A suspension costs a start. So a turn is many times as long as a start takes, and it gets longer with what the
job has had: by a third of that, with which the job gives its place to one that came at the same time as soon
as it has had one and a half times as much. A job that needs ten times as long is thus suspended a few times
more, where turns of one length would suspend it ten times as often, and nobody has to know how long it needs
(as with the queues of Tiresias; Gu et al., NSDI 2019). In the same way a job may be kept waiting for longer,
the longer it has run.
"""

from functools import cached_property
from math import ceil

from edt_launch.allocator.model import Job
from edt_launch.allocator.usage import enter
from edt_launch.allocator.work import Work, could_run


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
    def _needed(self) -> list[float]:
        return needed(self._work)

    def virtual_time(self, index: int) -> float:
        """Seconds of its minimum that a job has had, since the clock of all jobs began."""
        return self.entered[self._work.ids[index]] + self._work.jobs[index].usage.attained

    def has_run(self, index: int) -> bool:
        """Whether a job runs, or ever has."""
        return self._work.held[index] > 0 or self._work.jobs[index].usage.attained > 0

    def turn(self, index: int) -> float:
        """Seconds of its minimum by which a job has to be ahead of a suspended one to give it its place."""
        options, job = self._work.cluster.options, self._work.jobs[index]
        return max(
            options.turn, options.turn_costs * job.start_cost, options.turn_growth * job.usage.attained
        )

    def longest_wait(self, index: int) -> float:
        """Seconds after which a waiting job gets a reservation: twice its turn at least if it has run."""
        longest = self._work.cluster.options.longest_wait
        return self._crowding(index) * (
            max(longest, 2 * self.turn(index)) if self.has_run(index) else longest
        )

    def _crowding(self, index: int) -> int:
        """How many times the minimums of others fill what an owner above a job may have, rounded up."""
        times, own = 1, float(self._work.low[index])
        for node in self._work.homes[index].path:
            need = self._needed[node.position]
            times = max(times, ceil((need - own) / max(1.0, node.limit)))
            own = min(need, node.limit) - min(need - own, node.limit)
        return times


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


def needed(work: Work) -> list[float]:
    """The minimums below each owner of jobs that could run, by the nodes' positions.

    Of each child they are no more than it may have.
    """
    able = [index for index in range(len(work.jobs)) if could_run(work, index)]
    sums: list[float] = [*work.sums(work.low, able)]
    for node in reversed(work.nodes):
        if node.parent is not None:
            sums[node.parent.position] += min(sums[node.position], node.limit)
    return sums
