"""Keeping the table of hosts like the world: what a source tells, compared with what was known."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import structlog

from edt_launch.cluster.allocation import HostSlots
from edt_launch.cluster.hosts import HostSource, usable, ways
from edt_launch.cluster.usage import Usage, Used
from edt_launch.core.errors import SourceError
from edt_launch.service.bus import Bus, Topic
from edt_launch.service.cluster.losses import Losses
from edt_launch.service.cluster.machines import Machines
from edt_launch.service.cluster.records import HostRecord
from edt_launch.service.db.store import Store

log = structlog.get_logger()

BY_SSH = ("", "ssh")
"""Transports of hosts that are looked at over ssh."""

INTERVAL = 1.0
"""Seconds between two looks at the source."""


def changes(
    known: Iterable[HostRecord],
    listed: Sequence[HostSlots],
    source: str,
    now: float,
    lost: Mapping[str, str] = MappingProxyType({}),
) -> list[HostRecord]:
    """The hosts whose record is to change, as they are to be.

    A host that the source has dropped is down, as is one that is `lost`, for this reason; listed again, or
    reached again, it is up. That it is drained stays.

    Slots without named devices are GPUs, numbered from 0.
    """
    before = {host.name: host for host in known}
    after = {name: replace(host, is_up=False, lost="") for name, host in before.items()}
    for host in listed:
        devices = host.devices or tuple(map(str, range(host.slots)))
        old = before.get(host.host, HostRecord(host.host, devices))
        why = lost.get(host.host, "")
        after[host.host] = replace(old, devices=devices, is_up=not why, source=source, lost=why)
    return [replace(host, changed=now) for name, host in after.items() if host != before.get(name)]


class Inventory:
    """Looks at a source of hosts, each time that `refresh` is called; `clock` gives unix time.

    It tells the source which devices jobs have, and how many more they could use.
    """

    def __init__(
        self,
        source: HostSource,
        store: Store,
        bus: Bus,
        clock: Callable[[], float],
        machines: Machines | None = None,
        losses: Losses | None = None,
    ) -> None:
        self._losses = losses or Losses()
        self._machines = machines or Machines()
        self._source = source
        self._store = store
        self._bus = bus
        self._clock = clock
        self._trouble = ""
        self._usage = Usage(source)
        self._used: tuple[int, Used] = -1, frozenset()
        self.demand = 0
        """Slots that jobs could use besides those that the source shows."""

    def close(self) -> None:
        """The source is not needed any more; jobs may go on on its hosts."""
        self._source.close()

    def _in_use(self) -> Used:
        version = self._bus.version(Topic.JOBS)
        if version != self._used[0]:
            holders = self._store.jobs.holders()
            self._used = (
                version,
                frozenset(
                    (host, device)
                    for holder in holders
                    for host, devices in (*holder.held, *holder.leaving)
                    for device in devices
                ),
            )
        return self._used[1]

    def refresh(self) -> None:
        """Look once. What the source cannot tell stays as it was; that is logged once."""
        in_use = self._in_use()
        try:
            self._usage.tell(in_use, self.demand)
            listed = usable(self._source.hosts(), str(self._source))
            waiting = self._source.waiting()
        except Exception as error:
            if str(error) != self._trouble:
                trace = None if isinstance(error, SourceError) else error
                log.warning("hosts stay as they are", reason=str(error), exc_info=trace)
            self._trouble = str(error)
            return
        self._trouble = ""
        self._machines.heard, self._machines.waiting = self._clock(), waiting
        named, self._machines.listed = self._machines.listed, {host.host: host for host in listed}
        is_reached_otherwise = ways(named) != ways(self._machines.listed)
        by_ssh = {host.host for host in listed if host.transport in BY_SSH}
        lost = self._losses.look(self._clock(), by_ssh, self._store.jobs.unreachable())
        changed = changes(self._store.hosts.all(), listed, self._source.name, self._clock(), lost)
        if changed:
            self._store.hosts.put(changed)
            self._bus.notify(Topic.HOSTS, Topic.JOBS)
            for host in changed:
                log.info("host", name=host.name, state=host.state, devices=len(host.devices))
        elif is_reached_otherwise:
            self._bus.notify(Topic.HOSTS)
