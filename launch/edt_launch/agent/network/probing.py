"""Which other hosts an agent reaches: it listens at a port, and connects to those of the others."""

import contextlib
import selectors
import socket
import time
from collections.abc import Callable

from edt_launch.agent.protocol import Probe, Probed
from edt_launch.core.system.ports import PortRange, listening

PROBE_TIMEOUT = 2.0
"""Seconds that a host has to accept a connection."""


class Prober:
    """Connects to other agents without waiting; `report` is called with what was reached.

    Its descriptors are registered with `selector`, each with the function to call when it can be read.
    """

    def __init__(self, selector: selectors.BaseSelector, report: Callable[[Probed], None]) -> None:
        self._selector = selector
        self._report = report
        self._listener: socket.socket | None = None
        self._connecting = selectors.DefaultSelector()
        self._number = 0
        self._reached: list[str] = []
        self.deadline: float | None = None
        """When the present probe is over at the latest; None if there is none."""

    def listen(self, ports: PortRange | None = None) -> int:
        """Accept connections; returns the port.

        Raises:
            PortsUsedError: no port of the range is free.
        """
        if self._listener is None:
            self._listener = listening("", ports)
            self._listener.setblocking(False)
            self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
            self._selector.register(self._connecting, selectors.EVENT_READ, self._settle)
        port: int = self._listener.getsockname()[1]
        return port

    def begin(self, probe: Probe) -> None:
        """Try to connect to each of these hosts; an earlier probe is given up."""
        self._give_up()
        self._number, self._reached = probe.number, []
        self.deadline = time.monotonic() + PROBE_TIMEOUT
        for host, address in probe.addresses.items():
            name, _, port = address.rpartition(":")
            connection = socket.socket()
            connection.setblocking(False)
            with contextlib.suppress(OSError):  # shows when it is settled
                connection.connect_ex((name, int(port)))
            self._connecting.register(connection, selectors.EVENT_WRITE, host)
        self._settle()

    def tick(self) -> None:
        """End a probe whose time is over."""
        if self.deadline is not None and time.monotonic() >= self.deadline:
            self._end()

    def _accept(self) -> None:
        assert self._listener is not None
        with contextlib.suppress(OSError):  # the other side may be gone again
            self._listener.accept()[0].close()

    def _settle(self) -> None:
        for key, _ in self._connecting.select(0):
            connection, host = key.fileobj, key.data
            assert isinstance(connection, socket.socket)
            if _is_connected(connection):
                self._reached.append(host)
            self._connecting.unregister(connection)
            connection.close()
        if self.deadline is not None and not self._connecting.get_map():
            self._end()

    def _end(self) -> None:
        self._give_up()
        self._report(Probed(self._number, tuple(self._reached)))

    def _give_up(self) -> None:
        self.deadline = None
        for key in list((self._connecting.get_map() or {}).values()):
            self._connecting.unregister(key.fileobj)
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()


def _is_connected(connection: socket.socket) -> bool:
    """Whether a connection has come about."""
    try:
        connection.getpeername()
    except OSError:
        return False
    return True
