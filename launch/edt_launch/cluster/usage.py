"""Telling a source of hosts what jobs use of it, and what they could use besides."""

import logging
from collections.abc import Iterable, Sequence

from edt_launch.cluster.allocation import HostSlots
from edt_launch.cluster.hosts import HostSource

Used = frozenset[tuple[str, str]]
"""Devices that jobs have: host and device."""

log = logging.getLogger(__name__)


def used(hosts: Iterable[HostSlots]) -> Used:
    """The devices of these hosts; slots without devices are numbered from 0."""
    named = ((host.host, host.devices or tuple(map(str, range(host.slots)))) for host in hosts)
    return frozenset((host, device) for host, devices in named for device in devices)


def by_host(devices: Used) -> list[tuple[str, Sequence[str]]]:
    """The devices of each host, in order."""
    hosts = sorted({host for host, _ in devices})
    return [(host, sorted(device for at, device in devices if at == host)) for host in hosts]


class Usage:
    """What a source has been told. To be called from its thread alone."""

    def __init__(self, source: HostSource) -> None:
        self._source = source
        self._used: Used = frozenset()
        self._demand = 0

    def tell(self, now_used: Used, demand: int) -> None:
        """Tell what has changed: first what is free again, then what is used, then the demand."""
        before, self._used = self._used, now_used
        for host, devices in by_host(before - now_used):
            self._source.release(host, devices)
        for host, devices in by_host(now_used - before):
            self._source.reserve(host, devices)
        if demand != self._demand:
            self._demand = demand
            self._source.demand(demand)

    def close(self) -> None:
        """Nothing is used or wanted any more."""
        self.tell(frozenset(), 0)
        self._source.close()
