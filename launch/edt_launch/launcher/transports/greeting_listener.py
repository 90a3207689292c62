"""Listening for agents that dial back: TLS, and the greeting that each begins with."""

import asyncio
import socket
import ssl
from collections.abc import Callable

from edt_launch.agent.network.invitation import MAX_LINE, Greeting
from edt_launch.core.system.ports import PortRange, listening
from edt_messages.keepalive import end_with_peer

GREETING_TIMEOUT = 10.0
"""Seconds that a connection has for TLS and its greeting."""

MAX_UNAUTHENTICATED = 128
"""Connections without a greeting at a time; the oldest is closed for a further one."""

PEER_TIMEOUT = 15.0
"""Seconds after which a connection fails whose other end acknowledges nothing."""


class GreetingListener:
    """Accepts connections, and hears who has come.

    Args:
        context: for TLS.
        ports: to listen on one of; None for any.
        greeted: gets a greeting with its connection, and the address that it comes from.
        rejected: gets an address from which something else has come, and what.

    Raises:
        PortsUsedError: none of `ports` is free.
    """

    def __init__(
        self,
        context: ssl.SSLContext,
        ports: PortRange | None,
        greeted: Callable[[Greeting, asyncio.StreamReader, asyncio.StreamWriter, str], None],
        rejected: Callable[[str, str], None],
    ) -> None:
        self._context = context
        self._greeted, self._rejected = greeted, rejected
        self._socket = listening("", ports, backlog=MAX_UNAUTHENTICATED)
        self._socket.setblocking(False)
        self.port: int = self._socket.getsockname()[1]
        self._unauthenticated: dict[asyncio.Task[None], None] = {}

    async def accept(self) -> None:
        """Accept connections until it is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            connection, peer = await loop.sock_accept(self._socket)
            while len(self._unauthenticated) >= MAX_UNAUTHENTICATED:
                oldest = next(iter(self._unauthenticated))
                del self._unauthenticated[oldest]
                oldest.cancel()
            task = loop.create_task(self._receive(connection, peer[0]))
            self._unauthenticated[task] = None
            task.add_done_callback(lambda done: self._unauthenticated.pop(done, None))
            await asyncio.sleep(0)  # it begins, and closes the connection if it is cancelled

    def close(self) -> None:
        """Listen no more."""
        self._socket.close()

    async def _receive(self, connection: socket.socket, peer: str) -> None:
        """Hear who has come."""
        loop = asyncio.get_running_loop()
        writer = None
        try:
            async with asyncio.timeout(GREETING_TIMEOUT):
                reader = asyncio.StreamReader(limit=MAX_LINE)
                transport, base = await loop.connect_accepted_socket(
                    lambda: asyncio.StreamReaderProtocol(reader), connection, ssl=self._context
                )
                end_with_peer(connection, PEER_TIMEOUT)
                writer = asyncio.StreamWriter(transport, base, reader, loop)
                greeting = Greeting.parse(await reader.readuntil(b"\n"))
        except (OSError, ValueError, EOFError, asyncio.LimitOverrunError, TimeoutError) as error:
            self._rejected(peer, f"a connection from {peer} is no agent's: {_reason(error)}")
            _abort(writer)
        except asyncio.CancelledError:
            _abort(writer)
            raise
        else:
            self._greeted(greeting, reader, writer, peer)


def _abort(writer: asyncio.StreamWriter | None) -> None:
    if writer is not None:
        writer.transport.abort()


def _reason(error: Exception) -> str:
    match error:
        case TimeoutError():
            return f"it has said nothing for {GREETING_TIMEOUT:g} s"
        case asyncio.LimitOverrunError():
            return f"its first line has more than {MAX_LINE} bytes"
        case asyncio.IncompleteReadError():
            return "it was closed without a word"
    return str(error)
