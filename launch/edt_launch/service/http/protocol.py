"""HTTP as uvicorn speaks it, with limits on the time between requests and on that which a head takes."""

import asyncio
from typing import Any

import h11
from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol

from edt_launch.service.http.listening import Connections

HEAD = 10.0
"""Seconds that a client has to send the request line and all headers."""

KEEP_ALIVE = 90
"""Seconds that a connection is kept between two requests.

A client that polls sends its next request on the connection that it has; when the service closes it at that
moment, the request fails. When others need its place, an idle connection makes room earlier.
"""

_TIMEOUT = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class TimedProtocol(H11Protocol):
    """A connection, which is closed when the head of a request does not arrive in time.

    Args:
        connections: of which it is one, to be closed by them without delay.
    """

    def __init__(self, *arguments: Any, connections: Connections, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._connections = connections
        self._deadline: asyncio.TimerHandle | None = None

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self.client is not None:
            self._connections.closed_by(self.client, transport.abort)
        self._await_head()

    @override
    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._await_head()
        else:
            self._forget_deadline()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_deadline()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(HEAD, self._give_up)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.write(_TIMEOUT)
            self.transport.close()
