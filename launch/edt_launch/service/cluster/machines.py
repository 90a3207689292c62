"""What is known of hosts at present and not stored: when they were heard of, how this machine is used."""

import os
import socket
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

import psutil

from edt_launch.cluster import nvidia
from edt_launch.cluster.allocation import HostSlots
from edt_launch.cluster.hosts import LOCAL
from edt_launch.service.cluster.records import HostRecord

STALE = 5.0
"""Seconds for which a measurement counts."""


@dataclass(frozen=True)
class HostLoad:
    """How a machine is used.

    Attributes:
        processors: the load average of a minute, for each processor.
        memory: the part of its memory that is used, up to 1.
        gpus: of each GPU that answers, by its name.
    """

    processors: float
    memory: float
    gpus: Mapping[str, nvidia.Load]


def _names_of_this_machine() -> frozenset[str]:
    name = socket.gethostname()
    return frozenset({LOCAL, name, name.partition(".")[0]})


@dataclass
class Machines:
    """Any thread may ask.

    Attributes:
        heard: when the source of hosts answered last, in unix time.
        waiting: what it is waiting for to meet the demand of jobs; empty if it is not.
        listed: the hosts as it showed them last, by name, with the transports and agents that they name.
    """

    meter: nvidia.Meter = field(default_factory=nvidia.Nvml)
    own_names: Collection[str] = field(default_factory=_names_of_this_machine)
    heard: float | None = None
    waiting: str = ""
    listed: Mapping[str, HostSlots] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _seen: tuple[float, dict[str, HostLoad]] = (float("-inf"), {})

    def loads(self, hosts: Iterable[HostRecord], clock: Callable[[], float]) -> Mapping[str, HostLoad]:
        """How the hosts are used that are this machine, by name; nothing is known of the others."""
        own = [host for host in hosts if host.name in self.own_names and host.is_up]
        now = clock()
        with self._lock:
            at, known = self._seen
            if not 0 <= now - at < STALE or known.keys() != {host.name for host in own}:
                known = {host.name: self._measure(host) for host in own}
                self._seen = now, known
            return known

    def _measure(self, host: HostRecord) -> HostLoad:
        processors = os.cpu_count() or 1
        return HostLoad(
            psutil.getloadavg()[0] / processors,
            psutil.virtual_memory().percent / 100,
            self.meter.loads(host.devices),
        )
