"""The launcher's side of the conversation with the workers: JSON objects, one a line, over TCP.

`edt_hvd.world.control` lists the messages. A connection counts only after a `hello` with the job's token.
"""

import hmac
import json
import logging
import socket
import socketserver
import sys
import threading
from collections.abc import Callable
from typing import Any

log = logging.getLogger(__name__)

MAX_LINE = 2**20
"""Bytes that one message may have."""

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

    def __init__(self, address: str, token: str, receive: Callable[[int, dict[str, Any]], None]) -> None:
        super().__init__((address, 0), socketserver.BaseRequestHandler)
        self._token = token
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

    def send(self, worker: int, message_type: str, **content: Any) -> bool:
        """Send to a worker; False when it is not connected (any more)."""
        line = (json.dumps({"type": message_type, **content}) + "\n").encode()
        with self._lock:
            connection = self._connections.get(worker)
            if connection is None:
                return False
            try:
                connection.sendall(line)
            except OSError as error:  # its exit is noticed elsewhere
                log.info("worker %d cannot be told to %s: %s", worker, message_type, error)
                return False
        return True

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
                    message = _object(lines.readline(MAX_LINE))
                    worker = self._greet(request, message)
                    request.settimeout(None)
                finally:
                    self._strangers.release()
                self._receive(worker, message)
                while line := lines.readline(MAX_LINE):
                    self._receive(worker, _object(line))
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            log.info("connection of worker %s ended: %r", worker, error)
        finally:
            with self._lock:
                if worker is not None and self._connections.get(worker) is request:
                    del self._connections[worker]

    def _greet(self, connection: socket.socket, message: dict[str, Any]) -> int:
        token = str(message.pop("token"))
        if message["type"] != "hello" or not hmac.compare_digest(token, self._token):
            raise ValueError("the first message is no hello of this job")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        worker = int(message["worker"])
        with self._lock:
            self._connections[worker] = connection
        return worker


def _object(line: bytes) -> dict[str, Any]:
    message = json.loads(line)
    if not isinstance(message, dict):
        raise TypeError(f"{line[:80]!r} is no message")
    return message
