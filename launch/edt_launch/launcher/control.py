"""The launcher's end of the connections to the workers; `edt_messages.messages` has the messages.

A connection counts only after a `Hello` with the job's token.
"""

import hmac
import logging
import select
import socket
import socketserver
import sys
import threading
from collections.abc import Callable
from typing import Any

from edt_messages.codec import MessageError
from edt_messages.messages import MAX_LINE, Hello, Message, decode, encode, type_of

log = logging.getLogger(__name__)

HELLO_TIMEOUT = 30.0
"""Seconds that a connection has for its hello."""

STRANGERS = 128
"""Connections without a hello at a time; further ones are closed."""


class ControlServer(socketserver.ThreadingTCPServer):
    """Accepts workers, hands their messages to `receive(worker, message)`, and sends to them.

    `receive` is called from the connections' threads.
    """

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, address: str, token: str, receive: Callable[[int, Message], None]) -> None:
        super().__init__((address, 0), socketserver.BaseRequestHandler)
        self._token = token.encode()
        self._receive = receive
        self._connections: dict[int, socket.socket] = {}
        self._lock = threading.Lock()
        self._strangers = threading.BoundedSemaphore(STRANGERS)
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
        """Whether there is room for another connection that has not said who it is."""
        return self._strangers.acquire(blocking=False)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log what nobody expected; the view is not the place for it."""
        log.error("a connection from %s failed: %r", client_address, sys.exception())

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Converse with a worker, in the thread of its connection."""
        worker: int | None = None
        try:
            with request.makefile("rb") as lines:
                try:
                    request.settimeout(HELLO_TIMEOUT)
                    hello = decode(lines.readline(MAX_LINE))
                    worker = self._greet(request, hello)
                    request.settimeout(None)
                finally:
                    self._strangers.release()
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
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            self._connections[hello.worker] = connection
        return hello.worker
