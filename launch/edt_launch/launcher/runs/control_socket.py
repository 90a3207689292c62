"""The Unix socket over which a launcher is told to pause or to stop; `core.control_protocol` has the words.

It has no thread: whoever runs the job asks now and then what has come, and nothing here ever waits.
"""

import contextlib
import os
import signal
import socket
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from edt_launch.core.control_protocol import MAX_LINE, Pause, Refused, Reply, Request, Requests, Stop, write
from edt_launch.core.files.lines import LineSplitter
from edt_launch.core.system.unix_address import unix_address
from edt_launch.launcher.termination import PAUSE_SIGNAL

CONNECTIONS = 8
"""Connections that are open at a time; the oldest one makes room for another."""

CONNECTION_TIMEOUT = 10.0
"""Seconds for which a connection may be open."""

_CREDENTIALS = struct.Struct("3i")


def peer_user(connection: socket.socket) -> int:
    """The user whose process is at the other end, as the kernel says."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(credentials)[1])


@dataclass
class _Connection:
    socket: socket.socket
    until: float
    lines: LineSplitter = field(default_factory=lambda: LineSplitter(longest=MAX_LINE))


class ControlSocket:
    """Accepts requests of this user's processes. Where it cannot be made, only signals reach the launcher.

    What is at its path was left by a launcher that was killed.
    """

    def __init__(
        self,
        path: Path,
        complain: Callable[[str], None],
        peer_user: Callable[[socket.socket], int] = peer_user,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._peer_user = peer_user
        self._clock = clock
        self._requests = Requests()
        self._connections: list[_Connection] = []
        self._listener: socket.socket | None = None
        try:
            self._listener = _listening(path)
        except OSError as error:
            complain(f"{path} cannot be made: {error.strerror}; only signals pause or stop this job")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for connection in self._connections[:]:
            self._close(connection)
        if self._listener is not None:
            self._listener.close()
            with contextlib.suppress(OSError):
                self._path.unlink()

    def requests(self) -> list[Request]:
        """The new requests, in their order; each of them has been acknowledged."""
        if self._listener is None:
            return []
        now = self._clock()
        self._accept(now, self._listener)
        requests: list[Request] = []
        for connection in self._connections[:]:
            requests += self._read(connection)
            if now >= connection.until:
                self._close(connection)
        return requests

    def _accept(self, now: float, listener: socket.socket) -> None:
        for _ in range(CONNECTIONS):
            try:
                accepted, _ = listener.accept()
            except OSError:  # there is none, or no room for it at the moment
                return
            accepted.setblocking(False)
            if self._peer_user(accepted) != os.geteuid():
                _send(accepted, Refused(None, "this launcher belongs to another user"))
                accepted.close()
                continue
            if len(self._connections) == CONNECTIONS:
                self._close(self._connections[0])
            self._connections.append(_Connection(accepted, now + CONNECTION_TIMEOUT))

    def _read(self, connection: _Connection) -> Iterator[Request]:
        try:
            data = connection.socket.recv(MAX_LINE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        for line in connection.lines.feed(data):
            reply, request = self._requests.answer(line)
            if request is not None:
                yield request
            if not _send(connection.socket, reply):
                data = b""
        if connection.lines.skipped:
            _send(connection.socket, Refused(None, f"a message of more than {MAX_LINE} bytes"))
        if not data or connection.lines.skipped:
            self._close(connection)

    def _close(self, connection: _Connection) -> None:
        connection.socket.close()
        if connection in self._connections:
            self._connections.remove(connection)


def as_signals(request: Request) -> tuple[int, ...]:
    """The signals that ask for the same."""
    match request:
        case Pause():
            return (PAUSE_SIGNAL,)
        case Stop(_, at_once):
            return (signal.SIGTERM, signal.SIGINT) if at_once else (signal.SIGTERM,)


def _listening(path: Path) -> socket.socket:
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        os.fchmod(listener.fileno(), 0o600)  # what is bound has the mode from its first moment
        with unix_address(path) as address:
            listener.bind(address)
        listener.listen(CONNECTIONS)
    except OSError:
        listener.close()
        raise
    return listener


def _send(connection: socket.socket, reply: Reply) -> bool:
    """Send a reply; False to somebody who has gone, or does not read."""
    line = write(reply)
    try:
        return connection.send(line) == len(line)
    except OSError:
        return False
