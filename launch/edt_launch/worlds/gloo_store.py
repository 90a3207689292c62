"""The key-value store through which the members of one world find one another: Horovod's HTTP store, served.

Gloo's workers put their addresses there and ask for those of the others until they are there, every ten
milliseconds, for each of six meshes. Here a question waits at the server until it can be answered, so that no
time is lost between two of them. The protocol is that of Horovod's `http_store.cc`: GET, PUT and DELETE of
``/scope/key``, one request a connection.
"""

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import Any

MAX_REQUEST = 2**20
"""Bytes that a request may have; a worker's addresses in a world of a thousand take far fewer."""

MAX_CONNECTIONS = 4096
"""Open connections; a worker has one or two at a time. Further ones are closed without an answer."""

_OK = b"200 OK"
_VOID = b"-1"
_BAD_REQUEST = b"400 Bad Request"


class Rendezvous:
    """A store for one world, served by a thread of its own until it is closed.

    `values` are there from the beginning, by path (``scope/key``). The system chooses the port.
    """

    def __init__(self, address: str, values: Mapping[str, bytes]) -> None:
        self._values = dict(values)
        self._waiting: dict[str, list[_Connection]] = {}
        self._open: set[_Connection] = set()
        self._is_void = False
        self._loop = asyncio.new_event_loop()
        listening = self._loop.create_server(
            lambda: _Connection(self._open, self._answer, self._forget), address, 0
        )
        self._server = self._loop.run_until_complete(listening)
        self.port = int(self._server.sockets[0].getsockname()[1])
        self._thread = threading.Thread(target=self._serve, name="edt-rendezvous", daemon=True)
        self._thread.start()

    def void(self) -> None:
        """This world will not be formed: whoever asks gets an answer that ends its waiting.

        Horovod takes -1 for "not part of the job" where it asks for its rank, and Gloo for no address.
        """
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._void)

    def close(self) -> None:
        """Stop listening; whoever still waits for an answer gets the end of the connection."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    # The thread.

    def _serve(self) -> None:
        self._loop.run_forever()
        self._loop.run_until_complete(self._end())
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        while pending := asyncio.all_tasks() - {asyncio.current_task()}:  # what is just being accepted
            await asyncio.wait(pending)
        while self._open:
            for connection in self._open:
                connection.abort()
            await asyncio.sleep(0)

    def _void(self) -> None:
        self._is_void = True
        for path in list(self._waiting):
            self._answer_waiting(path, _VOID)

    def _answer_waiting(self, path: str, value: bytes) -> None:
        for connection in self._waiting.pop(path, []):
            connection.answer(_OK, value)

    def _forget(self, connection: "_Connection") -> None:
        self._open.discard(connection)
        for waiting in self._waiting.values():
            if connection in waiting:
                waiting.remove(connection)

    def _answer(self, connection: "_Connection", method: str, path: str, body: bytes) -> None:
        match method:
            case "GET" if self._is_void:
                connection.answer(_OK, _VOID)
            case "GET" if path in self._values:
                connection.answer(_OK, self._values[path])
            case "GET":
                self._waiting.setdefault(path, []).append(connection)
            case "PUT":
                self._values[path] = body
                self._answer_waiting(path, body)
                connection.answer(_OK)
            case "DELETE":  # a worker is through with a mesh; another may still be asking for it
                connection.answer(_OK)
            case _:
                connection.answer(_BAD_REQUEST)


class _Connection(asyncio.Protocol):
    def __init__(self, everyone: "set[_Connection]", ask: "_Ask", leave: "_Leave") -> None:
        self._everyone = everyone
        self._ask = ask
        self._leave = leave
        self._received = b""
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        if len(self._everyone) >= MAX_CONNECTIONS:
            self.abort()
        self._everyone.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave(self)

    def data_received(self, data: bytes) -> None:
        self._received += data
        try:
            request = _parse(self._received)
        except ValueError:
            self.answer(_BAD_REQUEST)
            return
        if request is not None:
            self._ask(self, *request)
        elif len(self._received) > MAX_REQUEST:
            self.answer(_BAD_REQUEST)

    def answer(self, status: bytes, content: bytes = b"") -> None:
        self._transport.write(
            b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status, len(content), content)
        )
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()


def _parse(received: bytes) -> tuple[str, str, bytes] | None:
    """Method, path and body of a request; None while it is not complete.

    Raises:
        ValueError: it is no request.
    """
    head, end, body = received.partition(b"\r\n\r\n")
    if not end:
        return None
    first, *headers = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ")
    fields = {name.lower(): value for name, _, value in (header.partition(":") for header in headers)}
    length = int(fields.get("content-length", "0"))
    return (method, path.strip("/"), body[:length]) if len(body) >= length else None


_Ask = Callable[[_Connection, str, str, bytes], None]
_Leave = Callable[[_Connection], None]
