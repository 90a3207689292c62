"""Agents on the nodes of a Ray cluster: an actor on the node starts them, and they dial back."""

from collections.abc import Mapping
from typing import ClassVar, Self

from edt_launch.cluster.hosts import HostSource
from edt_launch.cluster.ray.connection import Connection, Options
from edt_launch.cluster.ray.source import TRANSPORT, RayOptions
from edt_launch.cluster.ray.source import Ray as RayCluster
from edt_launch.core.errors import SourceError, StartError
from edt_launch.core.run_options import RunOptions
from edt_launch.core.system.ports import PortRange
from edt_launch.launcher.transports.dial_back import DialBack


class Ray(DialBack):
    """Has Ray start the agents that dial back."""

    name: ClassVar[str] = TRANSPORT
    options: ClassVar[type] = RayOptions
    by_name_only: ClassVar[bool] = True

    def __init__(self, connection: Connection, ports: PortRange | None = None) -> None:
        super().__init__(ports=ports)
        self._connection = connection

    @classmethod
    def detect(cls, options: RunOptions, environment: Mapping[str, str]) -> Self | None:
        """That of a job whose devices somebody else holds."""
        given = options.of(RayOptions)
        if given.ray is None:
            return None
        pool = given.ray_pool or "agents"
        return cls(Connection(Options(given.ray, pool, holds_devices=False, is_kept=True)), options.ports)

    @classmethod
    def offered_by(cls, source: HostSource, options: RunOptions) -> Self | None:  # noqa: D102
        return cls(source.connection, options.ports) if isinstance(source, RayCluster) else None

    def start(self, host: str) -> None:  # noqa: D102
        ended = self._connection.run_agent(host, (host,), f"{self.invitation.text}\n")
        # Of one that had come, the connection has told the end already.
        raise StartError(ended.text.strip() or f"the agent of {host} ended with exit code {ended.exit_code}")

    def close(self) -> None:  # noqa: D102
        super().close()
        self._connection.close()

    def address(self, host: str) -> str | None:  # noqa: D102
        try:
            hosts = self._connection.picture().hosts
        except SourceError:
            return None
        return next((known.address for known in hosts if known.name == host), None)
