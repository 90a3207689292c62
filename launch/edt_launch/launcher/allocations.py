"""What a job has: followed, judged, cut to what it can use, and put in force."""

from dataclasses import replace

from edt_launch.cluster.allocation import Allocation, render
from edt_launch.cluster.follower import Accepted, AllocationSource, Follower, Rejected, SourceFollower
from edt_launch.cluster.hosts import cap
from edt_launch.cluster.network import HostChecker
from edt_launch.core import events
from edt_launch.core.atomic import write_atomically
from edt_launch.core.errors import UsageError
from edt_launch.core.event_log import stamped
from edt_launch.launcher.job_monitor import JobMonitor
from edt_launch.launcher.plan import Plan


class Allocations:
    """The allocation in force, of which others may read a copy.

    Args:
        plan: says where it comes from.
        monitor: is told of changes.
        checker: looks at hosts.
    """

    def __init__(self, plan: Plan, monitor: JobMonitor, checker: HostChecker) -> None:
        self._plan = plan
        self._monitor = monitor
        self._checker = checker
        self._follower = _source(plan, checker)
        self._latest = None if plan.allocation is None else Accepted(plan.allocation)
        self._most = plan.limits.max_np
        self._failed_to_apply: int | None = None
        self.current: Allocation | None = None
        """The one in force; None before the first."""

    @property
    def rejection(self) -> str:
        """Why what the file or the source says changes nothing; empty if it is in force."""
        return self._follower.rejection if self._follower is not None else ""

    def close(self) -> None:
        """Follow nothing any more."""
        if self._follower is not None:
            self._follower.close()

    def cap(self, most: int) -> None:
        """From the next `follow` on the job has at most so many slots: it can use no more."""
        if most != self._most:
            self._most = most
            self._monitor.note(stamped(events.Usable(most)))

    def follow(self, now: float) -> None:
        """Look at the file, and put in force what is new.

        Args:
            now: seconds of a monotonic clock.

        Raises:
            UsageError: a host of the first one cannot be used.
            OSError: the first one cannot be written.
        """
        match self._follower.poll(now) if self._follower is not None else None:
            case Accepted() as accepted:
                self._latest = accepted
            case Rejected(reason):
                self._monitor.note(stamped(events.AllocationRejected(reason)))
        if self._latest is None:
            return
        slots = cap(self._latest.allocation.hosts, self._most)
        allocation = replace(self._latest.allocation, hosts=slots)
        if allocation == self.current:
            return
        if self.current is None:
            self._check(allocation)
            self._apply(allocation, None)
        else:
            self._try_to_apply(allocation, self._latest.changed)

    def _check(self, allocation: Allocation) -> None:
        problems = (self._checker(host.host) for host in allocation.hosts if host.slots)
        problem = next((problem for problem in problems if problem is not None), None)
        if problem is not None:
            raise UsageError(problem)

    def _try_to_apply(self, allocation: Allocation, changed: float | None) -> None:
        try:
            self._apply(allocation, changed)
        except OSError as error:  # a full disk, say: the job goes on, and this is tried again
            if error.errno != self._failed_to_apply:
                path = self._plan.paths.allocation
                reason = f"{path} cannot be written: {error.strerror}; it is tried again"
                self._monitor.note(stamped(events.AllocationRejected(reason)))
            self._failed_to_apply = error.errno
        else:
            self._failed_to_apply = None

    def _apply(self, allocation: Allocation, changed: float | None) -> None:
        write_atomically(self._plan.paths.allocation, render(allocation))
        is_first, self.current = self.current is None, allocation
        self._monitor.note(stamped(accepted(allocation, is_first, changed)))


def accepted(allocation: Allocation, is_first: bool, changed: float | None) -> events.AllocationAccepted:
    """The event of an allocation that is in force now; see there for the arguments."""
    hosts = tuple(events.AllocatedHost(host.host, host.slots, host.devices) for host in allocation.hosts)
    return events.AllocationAccepted(allocation.generation, allocation.slots, hosts, is_first, changed)


def _source(plan: Plan, checker: HostChecker) -> AllocationSource | None:
    """Where allocations come from; None if there is a single one."""
    if plan.source is not None:
        return SourceFollower(plan.source, plan.limits, checker)
    return Follower(plan.follow, plan.limits, checker) if plan.follow is not None else None
