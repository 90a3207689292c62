"""Passing on what the launcher and an agent that has dialled back say to each other."""

import asyncio
import contextlib
import socket

from edt_launch.agent import encoding, protocol

CHUNK = 2**16


class AgentStreams:
    """The two ends of an agent's connection, over TLS."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def read(self) -> bytes:
        """What comes next; nothing at the end, however that comes about."""
        return await _read(self._reader)

    def write(self, text: str) -> None:
        """Send a line."""
        self._writer.write(f"{text}\n".encode())

    def close(self) -> None:
        """Say no more."""
        self._writer.close()

    def abort(self) -> None:
        """Break the connection."""
        self._writer.transport.abort()

    async def closed(self, timeout: float) -> None:
        """Wait until everything is sent after `close`, for so many seconds at most."""
        with contextlib.suppress(OSError, TimeoutError):
            await asyncio.wait_for(self._writer.wait_closed(), timeout)

    async def relay(self, reports: socket.socket, orders: socket.socket) -> None:
        """Pass on the agent's reports and the launcher's orders until the agent's end."""
        _, to_launcher = await asyncio.open_connection(sock=reports)
        from_launcher, closing = await asyncio.open_connection(sock=orders)
        ordering = asyncio.create_task(self._pass_orders(from_launcher))
        try:
            while data := await self.read():
                to_launcher.write(data)
                await to_launcher.drain()
        except OSError:  # the launcher hears no more
            pass
        finally:
            ordering.cancel()
            to_launcher.close()
            closing.close()

    async def _pass_orders(self, orders: asyncio.StreamReader) -> None:
        with contextlib.suppress(OSError):
            while data := await _read(orders):
                self._writer.write(data)
                await self._writer.drain()
            self._writer.write(encoding.write(protocol.Close()))


async def _read(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(CHUNK)
    except OSError:  # a broken connection has no more to say
        return b""
