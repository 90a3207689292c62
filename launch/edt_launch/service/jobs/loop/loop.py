"""The loop: observes, decides, acts; and again whenever something has happened."""

import logging
import threading
import time
from collections.abc import Callable, Mapping

from edt_launch.allocator.model import Options
from edt_launch.cluster.allocation import HostSlots
from edt_launch.service.bus import Bus, Topic
from edt_launch.service.db.engine import AWAY
from edt_launch.service.db.store import Store
from edt_launch.service.jobs.loop.change_logger import ChangeLogger
from edt_launch.service.jobs.loop.pool import LoopSettings, Pool

log = logging.getLogger(__name__)

LOOK = 0.1
"""Seconds between two looks at what the jobs do."""

TROUBLE = 5.0
"""Seconds after which a database that cannot be reached is tried again."""


def run(
    settings: LoopSettings,
    store: Store,
    bus: Bus,
    stop: threading.Event,
    options: Options | None = None,
    told: Callable[[int], None] = lambda demand: None,
    listed: Callable[[], Mapping[str, HostSlots]] = dict,
) -> None:
    """Run the jobs until `stop` is set. Jobs go on without it; the next one finds them.

    Args:
        settings, store: of the service.
        bus: wakes it, and is told of what jobs do.
        stop: ends it.
        options: the allocator's constants; from the settings by default.
        told: of how many devices jobs could use besides those there are, after each decision.
        listed: the hosts as their source shows them now, by name.
    """
    pool = Pool(settings, store, bus, options=options, told=told, listed=listed)
    clock = Clock(settings.coalesce, settings.interval)
    seen = bus.version(Topic.DESIRED_STATE, Topic.HOSTS)
    clock.changed(time.time())
    problems = ChangeLogger()
    while not stop.is_set():
        version = bus.wait(Topic.DESIRED_STATE, Topic.HOSTS, seen=seen, timeout=LOOK)
        try:
            now = time.time()
            if version != seen:
                seen = version
                pool.read_again()
                clock.changed(now)
            has_happened = pool.look(now)
            if has_happened or clock.is_due(now):
                clock.decided(now, pool.act(now))
            problems.recovered("the loop of the jobs")
        except (*AWAY, OSError) as error:
            problems.failed("the loop of the jobs", error)
            pool.forget()
            stop.wait(TROUBLE)
    try:
        pool.close()
    except AWAY as error:
        log.warning("usage is not written down, half a minute of it may be lost: %s", error)


class Clock:
    """When to decide again: requests are gathered for a while, and time alone may be a reason, too.

    Args:
        coalesce: seconds for which requests are gathered.
        interval: seconds between two decisions at most.
    """

    def __init__(self, coalesce: float, interval: float) -> None:
        self._coalesce = coalesce
        self._interval = interval
        self._at = float("inf")

    def changed(self, now: float) -> None:
        """A desired state has changed."""
        self._at = min(self._at, now + self._coalesce)

    def is_due(self, now: float) -> bool:
        """Whether it is time. A clock that was set back must not make us wait for it."""
        return now >= self._at or now < self._at - max(self._interval, self._coalesce)

    def decided(self, now: float, again_at: float | None) -> None:
        """It was done now, and is to be done again at `again_at`, if not before."""
        self._at = now + self._interval if again_at is None else min(now + self._interval, max(again_at, now))
