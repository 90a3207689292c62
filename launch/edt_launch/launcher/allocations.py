"""What a job has: followed, judged, cut to what it can use, and put in force."""

from collections.abc import Callable
from dataclasses import replace

from edt_launch.cluster.allocation import Allocation, render
from edt_launch.cluster.follower import (
    Accepted,
    AllocationFollower,
    AllocationSource,
    CheckHost,
    Rejected,
    SourceFollower,
)
from edt_launch.cluster.hosts import cap
from edt_launch.cluster.usage import used
from edt_launch.core.errors import UsageError
from edt_launch.core.files.atomic import write_atomically
from edt_launch.core.history import events
from edt_launch.core.history.event_log import stamped
from edt_launch.launcher.plan import Plan


class Allocations:
    """The allocation in force, of which others may read a copy. `note` takes the events of its changes."""

    def __init__(self, plan: Plan, note: Callable[[events.Event], None], checker: CheckHost) -> None:
        self._path = plan.paths.allocation
        self._note = note
        self._checker = checker
        self._follower: AllocationSource | None = None
        if plan.source is not None:
            self._follower = SourceFollower(plan.source, plan.limits, checker)
        elif plan.follow is not None:
            self._follower = AllocationFollower(plan.follow, plan.limits, checker)
        self._latest = None if plan.allocation is None else Accepted(plan.allocation)
        self._most = plan.limits.max_np
        self._failed_to_apply: int | None = None
        self._running: set[tuple[int, str, str]] = set()
        """Workers that are not known to be gone, with host and device, or slot."""
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
            self._note(stamped(events.Usable(most)))

    def observe(self, event: events.Event) -> None:
        """Take note of workers that come and go: what one uses is in use until it is gone."""
        match event:
            case events.Started(worker, host, slot, device):
                self._running.add((worker, host, device or str(slot)))
            case events.Released(worker):
                self._running = {each for each in self._running if each[0] != worker}
            case _:
                return
        self._tell()

    def _tell(self) -> None:
        if self._follower is not None and self.current is not None:
            running = {(host, device) for _, host, device in self._running}
            demand = max(0, self._most - self.current.slots)
            self._follower.use(used(self.current.hosts) | running, demand)

    def follow(self, now: float) -> None:
        """Look at the file, and put in force what is new.

        Raises:
            UsageError: a host of the first one cannot be used.
            OSError: the first one cannot be written.
        """
        match self._follower.poll(now) if self._follower is not None else None:
            case Accepted() as accepted:
                self._latest = accepted
            case Rejected(reason):
                self._reject(reason)
        if self._latest is None:
            return
        slots = cap(self._latest.allocation.hosts, self._most)
        allocation = replace(self._latest.allocation, hosts=slots)
        if allocation == self.current:
            return
        if self.current is None:
            problems = (self._checker(host) for host in slots if host.slots)
            if problem := next(filter(None, problems), None):
                raise UsageError(problem)
            self._apply(allocation, None)
        else:
            self._try_to_apply(allocation, self._latest.changed)

    def _reject(self, reason: str) -> None:
        self._note(stamped(events.AllocationRejected(reason)))

    def _try_to_apply(self, allocation: Allocation, changed: float | None) -> None:
        try:
            self._apply(allocation, changed)
        except OSError as error:  # a full disk, say: the job goes on, and this is tried again
            if error.errno != self._failed_to_apply:
                self._reject(f"{self._path} cannot be written: {error.strerror}; it is tried again")
            self._failed_to_apply = error.errno
        else:
            self._failed_to_apply = None

    def _apply(self, allocation: Allocation, changed: float | None) -> None:
        write_atomically(self._path, render(allocation))
        is_first, self.current = self.current is None, allocation
        hosts = tuple(events.AllocatedHost(host.host, host.slots, host.devices) for host in allocation.hosts)
        self._tell()
        event = events.AllocationAccepted(allocation.generation, allocation.slots, hosts, is_first, changed)
        self._note(stamped(event))
