"""Following a source of hosts that may change: asked in a thread of its own, as it may take its time."""

import threading
import time

from edt_launch.cluster.allocation import Allocation, HostSlots
from edt_launch.cluster.follower import Accepted, AllocationSource, CheckHost, Limits, Rejected, Unchanged
from edt_launch.cluster.hosts import HostSource, cap, unbound
from edt_launch.core.errors import SourceError

INTERVAL = 1.0
"""Seconds from the end of one answer to the next question, as in Horovod."""


class SourceFollower(AllocationSource):
    """Asks a source again and again, from the start of this object on.

    Args:
        source: of hosts.
        limits: bounds on the number of slots; more than there may be are left out.
        check_host: asked for each host.
        interval: seconds from the end of one answer to the next question.
    """

    def __init__(
        self, source: HostSource, limits: Limits, check_host: CheckHost, interval: float = INTERVAL
    ) -> None:
        super().__init__()
        self._source = source
        self._limits = limits
        self._check_host = check_host
        self._interval = interval
        self._news: tuple[HostSlots, ...] | str | None = None
        """Hosts, or what is wrong; None once that is known."""
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="edt-hosts", daemon=True)
        self._thread.start()

    def poll(self, now: float) -> Accepted | Rejected | None:
        """What has not been told yet, or None; the time does not matter."""
        with self._lock:
            news, self._news = self._news, None
        if news is None:
            return None
        if isinstance(news, str):
            return self._judge(Rejected(news))
        hosts = cap(map(unbound, news), self._limits.max_np)
        if self.allocation is not None and set(hosts) == set(self.allocation.hosts):
            return self._judge(Unchanged())
        slots = sum(host.slots for host in hosts)
        if slots < self._limits.min_np:
            least = f"fewer than --min-np {self._limits.min_np}"
            return self._judge(Rejected(f"{self._source} shows {slots} slots, {least}"))
        problem = next(filter(None, (self._check_host(host.host) for host in hosts)), None)
        if problem is not None:
            return self._judge(Rejected(problem))
        generation = 1 if self.allocation is None else self.allocation.generation + 1
        return self._judge(Accepted(Allocation(generation, hosts), changed=time.time()))

    def close(self) -> None:
        """Ask no more. A question under way is left to its time limit."""
        self._stopped.set()

    def _serve(self) -> None:
        while not self._stopped.is_set():
            news: tuple[HostSlots, ...] | str
            try:
                news = self._source.hosts()
            except SourceError as error:
                news = str(error)
            with self._lock:
                self._news = news
            self._stopped.wait(self._interval)
