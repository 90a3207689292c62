"""The key-value store through which the members of one world find one another: Horovod's HTTP store, served.

Gloo's workers put their addresses there and ask for those of the others until they are there, every ten
milliseconds, for each of six meshes. Here a question waits at the server until it can be answered, so that no
time is lost between two of them. The protocol is that of Horovod's `http_store.cc`, with the patches in
`native/horovod`: GET, PUT and DELETE of ``/scope/key``, one request a connection, with the job's
token.
"""

import asyncio
import hmac
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from edt_launch.core.system.ports import PortRange, listening
from edt_messages.keepalive import end_with_peer

MAX_HEAD = 2**13
"""Bytes that the head of a request may have."""

MAX_BODY = 2**20
"""Bytes that a value may have; a worker's addresses in a world of a thousand take far fewer."""

MAX_CONNECTIONS = 4096
"""Open connections; a worker has one or two at a time. For a further one, the oldest is closed that has not
shown the token yet, without an answer; or the further one itself."""

_OK = b"200 OK"
_VOID = b"-1"
_BAD_REQUEST = b"400 Bad Request"
_FORBIDDEN = b"403 Forbidden"


class Rendezvous:
    """A store for one world, served by a thread of its own until it is closed.

    Every request has to show `token`. `values` are there from the beginning, by path (``scope/key``).

    Raises:
        PortsUsedError: none of `ports` is free.
    """

    def __init__(
        self, address: str, token: str, values: Mapping[str, bytes], ports: PortRange | None = None
    ) -> None:
        self._authorization = f"Bearer {token}".encode()
        self._values = dict(values)
        self._waiting: dict[str, list[_Connection]] = {}
        self._open: dict[_Connection, None] = {}
        """The open connections, the oldest first."""
        self._is_void = False
        listener = listening(address, ports)
        self.port = int(listener.getsockname()[1])
        self._loop = asyncio.new_event_loop()
        serving = self._loop.create_server(
            lambda: _Connection(self._admit, self._check, self._answer, self._forget), sock=listener
        )
        self._server = self._loop.run_until_complete(serving)
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
            for connection in list(self._open):
                connection.abort()
            await asyncio.sleep(0)

    def _void(self) -> None:
        self._is_void = True
        for path in list(self._waiting):
            self._answer_waiting(path, _VOID)

    def _answer_waiting(self, path: str, value: bytes) -> None:
        for connection in self._waiting.pop(path, []):
            connection.answer(_OK, value)

    def _admit(self, connection: "_Connection") -> None:
        self._open[connection] = None
        if len(self._open) > MAX_CONNECTIONS:
            strangers = (each for each in self._open if each.request is None)
            next(strangers, connection).abort()

    def _forget(self, connection: "_Connection") -> None:
        self._open.pop(connection, None)
        for waiting in self._waiting.values():
            if connection in waiting:
                waiting.remove(connection)

    def _check(self, request: "_Request") -> bool:
        return hmac.compare_digest(request.authorization, self._authorization)

    def _answer(self, connection: "_Connection", request: "_Request", body: bytes) -> None:
        path = request.path
        match request.method:
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


@dataclass(frozen=True)
class _Request:
    """The head of a request."""

    method: str
    path: str
    authorization: bytes
    length: int

    @classmethod
    def parse(cls, head: bytes) -> "_Request":
        """Raises ValueError: it is no head of a request, is too long, or announces too long a body."""
        if len(head) > MAX_HEAD:
            raise ValueError(f"a head of more than {MAX_HEAD} bytes")
        first, *headers = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in headers)}
        length = int(fields.get("content-length", "0"))
        if not 0 <= length <= MAX_BODY:
            raise ValueError(f"a body of {length} bytes")
        return cls(method, path.strip("/"), fields.get("authorization", "").encode(), length)


class _Connection(asyncio.Protocol):
    def __init__(
        self,
        admit: "Callable[[_Connection], None]",
        check: Callable[[_Request], bool],
        ask: "Callable[[_Connection, _Request, bytes], None]",
        leave: "Callable[[_Connection], None]",
    ) -> None:
        self.request: _Request | None = None
        """Its request, once all of the head is there and has shown the token."""
        self._admit = admit
        self._check = check
        self._ask = ask
        self._leave = leave
        self._received = bytearray()
        self._is_read = False
        """Whether all of the request is there, or it has been refused."""
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        end_with_peer(self._transport.get_extra_info("socket"))
        self._admit(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave(self)

    def data_received(self, data: bytes) -> None:
        if self._is_read:
            return
        self._received += data
        if self.request is None:
            self._read_head()
        if self.request is not None and len(self._received) >= self.request.length:
            self._is_read = True
            self._ask(self, self.request, bytes(self._received[: self.request.length]))

    def _read_head(self) -> None:
        """Take the head off what has been received, if it is all there; refuse it without the token."""
        head, end, body = self._received.partition(b"\r\n\r\n")
        if not end and len(head) <= MAX_HEAD:
            return
        try:
            request = _Request.parse(bytes(head[: MAX_HEAD + 1]))
        except ValueError:
            self._refuse(_BAD_REQUEST)
            return
        if not self._check(request):
            self._refuse(_FORBIDDEN)
            return
        self.request, self._received = request, body

    def _refuse(self, status: bytes) -> None:
        self._is_read = True
        self.answer(status)

    def answer(self, status: bytes, content: bytes = b"") -> None:
        self._transport.write(
            b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status, len(content), content)
        )
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()
