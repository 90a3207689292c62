"""A Ray cluster as a source of hosts."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

from typer import Option

from edt_launch.cluster.allocation import HostSlots
from edt_launch.cluster.hosts import HostOptions, HostSource
from edt_launch.cluster.ray.connection import Connection, Options
from edt_launch.cluster.ray.holding import IDLE_LIMIT
from edt_launch.cluster.ray.messages import Picture
from edt_launch.core.command_line import named
from edt_launch.core.errors import UsageError

TRANSPORT = "ray"
"""The transport of a cluster's nodes."""


def hosts_of(picture: Picture) -> tuple[HostSlots, ...]:
    """The hosts that jobs may have: the devices that are held of nodes that stay."""
    return tuple(
        HostSlots(host.name, len(host.devices), host.devices, TRANSPORT)
        for host in picture.hosts
        if host.devices and not host.is_draining
    )


@dataclass(frozen=True)
class RayOptions:
    """The options of `Ray`, and of the transport to its hosts."""

    ray: Annotated[
        str | None,
        Option(
            metavar="ADDRESS", help="Run on the nodes of this Ray cluster: host:port of its head, or auto."
        ),
    ] = None
    slots_at_most: Annotated[
        int | None, Option(min=1, help="Maximum number of slots to hold in the Ray cluster.")
    ] = None
    ray_idle_timeout: Annotated[
        float, Option(min=0, max=1e6, help="Seconds until a pool gives back devices that no job uses.")
    ] = IDLE_LIMIT
    ray_pool: Annotated[
        str | None, Option(help="Name by which held devices are found again after a restart.")
    ] = None


class Ray(HostSource):
    """The nodes of a Ray cluster, with the devices that are held of them.

    Args:
        bridge: options of the connection.
        connect: makes it.
    """

    name: ClassVar[str] = "ray"
    options: ClassVar[type] = RayOptions
    transport: ClassVar[str] = TRANSPORT
    may_change: ClassVar[bool] = True
    may_grow: ClassVar[bool] = True

    def __init__(self, bridge: Options, connect: Callable[[Options], Connection] = Connection) -> None:
        self._bridge = bridge
        self.connection = connect(bridge)
        self._used: set[tuple[str, str]] = set()
        self._shown = 0
        """Devices, when `hosts` was last asked."""

    def __str__(self) -> str:
        return f"--ray {self._bridge.address}"

    @classmethod
    def detect(cls, options: HostOptions) -> Self | None:
        """The source of a job, whose devices are given back at its end; or of a pool, if it has a name."""
        given = options.of(RayOptions)
        if given.ray is None:
            if besides := named(given):
                raise UsageError(f"{besides[0]} is for --ray: give that, too")
            return None
        pool = given.ray_pool or f"job-{secrets.token_hex(8)}"
        bridge = Options(
            given.ray,
            pool,
            most=given.slots_at_most,
            is_kept=given.ray_pool is not None,
            idle_limit=given.ray_idle_timeout,
        )
        return cls(bridge)

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
        has = self._shown if self._bridge.is_kept else len(self._used)
        self.connection.want(has + slots if slots else len(self._used), sorted(self._used))

    def waiting(self) -> str:  # noqa: D102
        return self.connection.picture().reason

    def close(self) -> None:
        """Give back what is held."""
        self.connection.close()
