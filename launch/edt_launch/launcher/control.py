"""The launcher's end of the connections to the workers; `edt_messages.messages` has the messages.

A connection counts only after a `Hello` with the job's token. Until then it holds no place: it has a few
seconds, and when there are many such connections the oldest makes room for the next.
"""

import contextlib
import hmac
import logging
import select
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from edt_launch.core.system.ports import PortRange, listening
from edt_messages.codec import MessageError
from edt_messages.keepalive import end_with_peer
from edt_messages.messages import MAX_LINE, Hello, Message, decode, encode, type_of

log = logging.getLogger(__name__)

HELLO_TIMEOUT = 10.0
"""Seconds that a connection has for its hello. A worker sends it as soon as it is connected."""

MAX_UNAUTHENTICATED = 128
"""Connections without a hello at a time; the oldest is closed for a further one."""


class ControlServers:
    """Servers for the same workers on several addresses of this machine, each opened when it is needed."""

    def __init__(
        self, token: str, receive: Callable[[int, Message], None], ports: PortRange | None = None
    ) -> None:
        self._token = token
        self._receive = receive
        self._ports = ports
        self._servers: dict[str, ControlServer] = {}

    def at(self, address: str) -> str:
        """`ip:port` that workers connect to, on this address."""
        if address not in self._servers:
            self._servers[address] = ControlServer(address, self._token, self._receive, ports=self._ports)
        return self._servers[address].address

    def send(self, worker: int, message: Message) -> bool:
        """Send to a worker; False when it is not connected (any more)."""
        return any(server.send(worker, message) for server in self._servers.values())

    def has_unread(self, worker: int) -> bool:
        """Whether `receive` is still to hear what a worker that has ended has sent, or that it is gone."""
        return any(server.has_unread(worker) for server in self._servers.values())

    def close(self) -> None:
        """Accept no more connections."""
        for server in self._servers.values():
            server.close()


class ControlServer(socketserver.ThreadingTCPServer):
    """Accepts workers, hands their messages to `receive(worker, message)`, and sends to them.

    `receive` is called from the connections' threads. A connection has `hello_timeout` seconds for its hello;
    of more than `max_unauthenticated` without one the oldest is closed.

    Raises:
        PortsUsedError: none of `ports` is free.
    """

    daemon_threads = True

    def __init__(
        self,
        address: str,
        token: str,
        receive: Callable[[int, Message], None],
        hello_timeout: float = HELLO_TIMEOUT,
        max_unauthenticated: int = MAX_UNAUTHENTICATED,
        ports: PortRange | None = None,
    ) -> None:
        # A full queue would make workers wait for seconds.
        listener = listening(address, ports, backlog=MAX_UNAUTHENTICATED)
        super().__init__(listener.getsockname(), socketserver.BaseRequestHandler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self._token = token.encode()
        self._receive = receive
        self._connections: dict[int, socket.socket] = {}
        self._lock = threading.Lock()
        self._hello_timeout = hello_timeout
        self._max_unauthenticated = max_unauthenticated
        self._unauthenticated: dict[socket.socket, float] = {}
        """When the connections without a hello were accepted, the oldest first."""
        threading.Thread(target=self.serve_forever, name="edt-control", daemon=True).start()

    @property
    def address(self) -> str:
        """`ip:port` that workers connect to."""
        ip, port = self.server_address[:2]
        return f"{ip!s}:{port}"

    def send(self, worker: int, message: Message) -> bool:
        """Send to a worker; False when it is not connected (any more)."""
        line = encode(message)
        with self._lock:
            connection = self._connections.get(worker)
            if connection is None:
                return False
            try:
                connection.sendall(line)
            except OSError as error:  # its exit is noticed elsewhere
                log.info("worker %d cannot be sent %r: %s", worker, type_of(message), error)
                return False
        return True

    def has_unread(self, worker: int) -> bool:
        """Whether `receive` is still to hear what a worker that has ended has sent, or that it is gone."""
        with self._lock:
            connection = self._connections.get(worker)
            if connection is None:
                return False
            poll = select.poll()
            poll.register(connection, select.POLLIN)
            return bool(poll.poll(0))

    def close(self) -> None:
        """Accept no more connections."""
        self.shutdown()
        self.server_close()

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Take in a connection that has not said who it is; the oldest of too many has to go."""
        with self._lock:
            if len(self._unauthenticated) >= self._max_unauthenticated:
                self._drop(next(iter(self._unauthenticated)))
            self._unauthenticated[request] = time.monotonic()
        return True

    def service_actions(self) -> None:
        """Close connections whose hello is overdue. Called twice a second."""
        with self._lock:
            latest = time.monotonic() - self._hello_timeout
            for stranger in [stranger for stranger, since in self._unauthenticated.items() if since < latest]:
                self._drop(stranger)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection with which nobody converses any more."""
        with self._lock:
            self._unauthenticated.pop(request, None)
        super().shutdown_request(request)

    def _drop(self, stranger: socket.socket) -> None:
        """Wake the thread of a connection, which closes it."""
        del self._unauthenticated[stranger]
        with contextlib.suppress(OSError):  # it has gone by itself
            stranger.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log what nobody expected; the view is not the place for it."""
        log.error("a connection from %s failed: %r", client_address, sys.exception())

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Converse with a worker, in the thread of its connection."""
        worker: int | None = None
        try:
            with request.makefile("rb") as lines:
                end_with_peer(request)
                hello = decode(lines.readline(MAX_LINE))
                worker = self._greet(request, hello)
                self._receive(worker, hello)
                while line := lines.readline(MAX_LINE):
                    self._take_line(worker, line)
        except (OSError, ValueError) as error:
            log.info("connection of worker %s ended: %r", worker, error)
        finally:
            with self._lock:
                if worker is not None and self._connections.get(worker) is request:
                    del self._connections[worker]

    def _take_line(self, worker: int, line: bytes) -> None:
        """Receive the message in a line.

        Raises:
            MessageError: it is not even a whole line.
        """
        try:
            self._receive(worker, decode(line))
        except MessageError as error:
            if not line.endswith(b"\n"):
                raise
            log.info("a line of worker %d is skipped: %s", worker, error)

    def _greet(self, connection: socket.socket, hello: Message) -> int:
        if not isinstance(hello, Hello) or not hmac.compare_digest(hello.token.encode(), self._token):
            raise ValueError("the first message is no hello of this job")
        with self._lock:
            if self._unauthenticated.pop(connection, None) is None:
                raise ValueError("its hello comes too late")
            self._connections[hello.worker] = connection
        return hello.worker
