"""A Ray cluster as a source of hosts."""

import secrets
from collections.abc import Callable, Sequence
from typing import ClassVar, Self

from edt_launch.cluster.allocation import HostSlots
from edt_launch.cluster.hosts import HostOptions, HostSource
from edt_launch.cluster.ray.connection import Connection, Options
from edt_launch.cluster.ray.messages import Picture

TRANSPORT = "ray"
"""The transport of a cluster's nodes."""


def hosts_of(picture: Picture) -> tuple[HostSlots, ...]:
    """The hosts that jobs may have: the devices that are held of nodes that stay."""
    return tuple(
        HostSlots(host.name, len(host.devices), host.devices, TRANSPORT)
        for host in picture.hosts
        if host.devices and not host.is_draining
    )


class Ray(HostSource):
    """The nodes of a Ray cluster, with the devices that are held of them.

    Args:
        options: of the connection.
        connect: makes it.
    """

    name: ClassVar[str] = "ray"
    may_change: ClassVar[bool] = True

    def __init__(self, options: Options, connect: Callable[[Options], Connection] = Connection) -> None:
        self.options = options
        self.connection = connect(options)
        self._used: set[tuple[str, str]] = set()
        self._shown = 0
        """Devices, when `hosts` was last asked."""

    def __str__(self) -> str:
        return f"--ray {self.options.address}"

    @classmethod
    def detect(cls, options: HostOptions) -> Self | None:
        """The source of a job, whose devices are given back at its end; or of a pool, if it has a name."""
        if options.ray is None:
            return None
        is_pool = options.pool is not None
        pool = options.pool or f"job-{secrets.token_hex(8)}"
        return cls(Options(options.ray, pool, most=options.slots_at_most, is_kept=is_pool))

    def hosts(self) -> tuple[HostSlots, ...]:  # noqa: D102
        hosts = hosts_of(self.connection.picture())
        self._shown = sum(host.slots for host in hosts)
        return hosts

    def reserve(self, host: str, devices: Sequence[str]) -> None:  # noqa: D102
        self._used |= {(host, device) for device in devices}

    def release(self, host: str, devices: Sequence[str]) -> None:  # noqa: D102
        self._used -= {(host, device) for device in devices}

    def demand(self, slots: int) -> None:
        """Have so many more devices held; the demand of a job is what it has less than it could use."""
        has = self._shown if self.options.is_kept else len(self._used)
        self.connection.want(has + slots if slots else len(self._used), sorted(self._used))

    def close(self) -> None:
        """Give back what is held."""
        self.connection.close()
