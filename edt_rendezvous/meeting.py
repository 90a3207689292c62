"""The store at which the agents of a job meet: an agent on the first host of the allocation serves it."""

import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta

from torch._C._distributed_c10d import PrefixStore, TCPStore
from torch.distributed import DistError

from edt_rendezvous.membership import World

CONNECT_LIMIT = 2.0
"""Seconds for one attempt to reach the store."""
LIMIT = timedelta(seconds=10)
"""For one operation of a store that answers."""


class Meeting:
    """Keeps the connection to the store of a job, wherever its first host is.

    Args:
        job: what all agents of the job have in common.
        port: of the store.
        is_here: whether a host is this machine.
    """

    def __init__(self, job: str, port: int, is_here: Callable[[str], bool]) -> None:
        self._job = job
        self._port = port
        self._is_here = is_here
        self._host: str | None = None
        self._server: TCPStore | None = None
        self._store: PrefixStore | None = None

    @property
    def is_serving(self) -> bool:
        """Whether the store is in this process."""
        return self._server is not None

    @property
    def is_connected(self) -> bool:
        """Whether there is a store; it may have ended since it was last used."""
        return self._store is not None

    def is_reachable(self, world: World) -> bool:
        """Whether somebody serves the store of a world."""
        host = world.nodes[0].host
        return (self._store is not None and host == self._host) or self._answers(host)

    def address(self, world: World) -> str:
        """Where the agents of a world meet, for messages."""
        return f"{world.nodes[0].host}:{self._port}"

    def reach(self, world: World) -> bool:
        """Connect to the store on the first host of a world, or serve it; False if nobody can.

        Raises:
            DistError: what listens there is no store.
        """
        host = world.nodes[0].host
        if self._store is not None and host == self._host:
            return True
        self.lose()
        if self._is_here(host) and not self._answers(host):
            with suppress(DistError):  # another agent of this host was faster
                self._server = TCPStore(
                    host, self._port, is_master=True, wait_for_workers=False, timeout=LIMIT
                )
        if self._server is None and not self._answers(host):
            return False
        store = self._server or TCPStore(host, self._port, wait_for_workers=False, timeout=LIMIT)
        self._host, self._store = host, PrefixStore(self._job, store)
        return True

    def lose(self) -> None:
        """Forget the store, after an operation has failed or when it has moved."""
        self._host = self._server = self._store = None

    def arrived(self, world: World, attempt: int) -> set[int]:
        """The ranks whose agents wait for this world, or have waited for it."""
        store = self._connected()
        prefix = _prefix(world, attempt)
        if not store.add(f"{prefix}/arrivals", 0):
            return set()
        return {rank for rank in range(len(world.nodes)) if store.check([f"{prefix}/arrived/{rank}"])}

    def is_complete(self, world: World, attempt: int) -> bool:
        """Whether the agents of all ranks have waited for this world."""
        prefix = _prefix(world, attempt)
        return bool(self._connected().check([f"{prefix}/arrived/{rank}" for rank in range(len(world.nodes))]))

    def arrive(self, world: World, attempt: int, rank: int) -> None:
        """Wait for this world from now on."""
        prefix = _prefix(world, attempt)
        self._connected().set(f"{prefix}/arrived/{rank}", "1")
        self._connected().add(f"{prefix}/arrivals", 1)

    def publish(self, world: World, attempt: int, address: str) -> None:
        """Say where the store of a world is that has formed."""
        self._connected().set(f"{_prefix(world, attempt)}/address", address)

    def published(self, world: World, attempt: int) -> str | None:
        """What `publish` was told; None if it was not yet."""
        key = f"{_prefix(world, attempt)}/address"
        return self._connected().get(key).decode() if self._connected().check([key]) else None

    def close(self) -> None:
        """Say that the job is over."""
        self._connected().set("closed", "1")

    def is_closed(self) -> bool:
        """Whether the job is over."""
        return bool(self._connected().check(["closed"]))

    def count_idle(self, change: int = 0) -> int:
        """The number of agents without a node that want to know when the job is over, after a change."""
        return int(self._connected().add("idle", change))

    def _connected(self) -> PrefixStore:
        if self._store is None:
            raise DistError("no connection to the store of the rendezvous")
        return self._store

    def _answers(self, host: str) -> bool:
        try:
            socket.create_connection((host, self._port), CONNECT_LIMIT).close()
        except OSError:
            return False
        return True


def _prefix(world: World, attempt: int) -> str:
    return f"{world.generation}/{attempt}"


def missing(world: World, arrived: Sequence[int] | set[int]) -> str:
    """The nodes that have not arrived, in words."""
    return ", ".join(str(node) for rank, node in enumerate(world.nodes) if rank not in arrived)
