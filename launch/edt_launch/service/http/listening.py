"""The socket that the service listens on, with a bound for the connections that it takes in.

They are counted from the moment they are accepted, so that one that never ends its TLS handshake counts, too.
When there are too many, the oldest makes room that has not sent the head of a request yet, or else the oldest
whose token has not been accepted yet. None is accepted before that one is closed: so there are never more,
and whoever sends a request is heard before too many others have come after it. Those of one user that make no
room are few enough to leave some for others, also at the same address.
"""

import contextlib
import socket
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send
from typing_extensions import override

from edt_launch.service.errors import UnavailableError

BACKLOG = 100
"""Connections that may wait to be accepted, and that are accepted at once."""

RESERVED = 160
"""Descriptors that are kept for the database, the jobs' files and their launchers."""

FEWEST = 16
"""Connections that are taken in at least, however few descriptors there are."""

BUSY = "edt_busy"
"""Where a request's scope has the context, of a user, in which its connection makes room for no other."""

REFUSING = "edt_refusing"
"""Where it has that in which a refused request, whose body is still taken in, does not count as one."""

USERS = 4
"""How many users can use up the connections of an address, each with as many requests as they may have."""

Peer = tuple[str, int]
"""The address and the port of a connection's other end."""


@dataclass
class _Open:
    """A connection: how it is closed, and how many requests it has under way, not yet or already accepted."""

    close: Callable[[], None]
    asking: int = 0
    busy: int = 0


@dataclass
class Connections:
    """The connections that are open.

    Args:
        most: of them.
        most_of_address: of those from one address.
    """

    most: int
    most_of_address: int
    _open: dict[Peer, _Open] = field(default_factory=dict)
    """The one whose last request began, or that came, the longest ago is the first."""
    _closing: set[Peer] = field(default_factory=set)
    _of_address: Counter[str] = field(default_factory=Counter)
    _of_user: Counter[str] = field(default_factory=Counter)

    @classmethod
    def within(cls, most: int, most_of_address: int, descriptors: int) -> "Connections":
        """With these bounds, or lower ones: each connection may follow a file, besides its own descriptor."""
        most = max(FEWEST, min(most, (descriptors - RESERVED) // 2))
        return cls(most, max(FEWEST // 2, min(most_of_address, most // 2)))

    @property
    def most_of_user(self) -> int:
        """Requests of one user that are served at a time."""
        return max(1, self.most_of_address // USERS)

    @property
    def is_closing(self) -> bool:
        """Whether one that is to make room still has its descriptor."""
        return bool(self._closing)

    def admit(self, peer: Peer, close: Callable[[], None]) -> bool:
        """Take another one in, if there is room, or can be made by closing one that waits."""
        is_address_full = self._of_address[peer[0]] >= self.most_of_address
        if is_address_full or len(self._open) >= self.most:
            oldest = self._oldest(peer[0] if is_address_full else None)
            if oldest is None:
                return False
            self._closing.add(oldest)
            self._forget(oldest).close()
        self._open[peer] = _Open(close)
        self._of_address[peer[0]] += 1
        return True

    def _oldest(self, address: str | None) -> Peer | None:
        """The connection that makes room, of an address if one is given."""
        waiting = [
            peer for peer, of in self._open.items() if not of.busy and (address is None or peer[0] == address)
        ]
        return next((peer for peer in waiting if not self._open[peer].asking), next(iter(waiting), None))

    def closed_by(self, peer: Peer, close: Callable[[], None]) -> None:
        """Have a connection closed another way from now on."""
        if peer in self._open:
            self._open[peer].close = close
        elif peer in self._closing:
            close()

    def release(self, peer: Peer) -> None:
        """One is closed; nothing happens if it was before."""
        self._closing.discard(peer)
        if peer in self._open:
            self._forget(peer)

    def _forget(self, peer: Peer) -> _Open:
        self._of_address[peer[0]] -= 1
        if not self._of_address[peer[0]]:
            del self._of_address[peer[0]]
        return self._open.pop(peer)

    @contextlib.contextmanager
    def asking(self, peer: Peer) -> Iterator[None]:
        """In the context others make room before it does; then it is the youngest."""
        if (one := self._open.get(peer)) is None:
            yield
            return
        one.asking += 1
        try:
            yield
        finally:
            one.asking -= 1
            if self._open.get(peer) is one:
                self._open[peer] = self._open.pop(peer)

    @contextlib.contextmanager
    def refusing(self, peer: Peer) -> Iterator[None]:
        """In the context it makes room as if it had sent no request yet."""
        if (one := self._open.get(peer)) is None:
            yield
            return
        one.asking -= 1
        try:
            yield
        finally:
            one.asking += 1

    @contextlib.contextmanager
    def busy(self, peer: Peer, user: str) -> Iterator[None]:
        """In the context it serves a user, and makes room for no other.

        Raises:
            UnavailableError: it would be one too many of the user's.
        """
        if (one := self._open.get(peer)) is None:
            yield
            return
        if self._of_user[user] >= self.most_of_user:
            raise UnavailableError(
                f"{self.most_of_user} of your requests are served already",
                "wait for some of them, or end streams that you follow",
            )
        one.busy += 1
        self._of_user[user] += 1
        try:
            yield
        finally:
            one.busy -= 1
            self._of_user[user] -= 1
            if not self._of_user[user]:
                del self._of_user[user]

    def noted(self, app: ASGIApp) -> ASGIApp:
        """The application, with `BUSY` and `REFUSING` in the scope of each request."""

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http" or not scope.get("client"):
                await app(scope, receive, send)
                return
            peer = tuple(scope["client"])
            scope[BUSY], scope[REFUSING] = partial(self.busy, peer), partial(self.refusing, peer)
            with self.asking(peer):
                await app(scope, receive, send)

        return serve


class Listener(socket.socket):
    """A listening socket; connections beyond the bounds are closed as soon as they are accepted."""

    connections: Connections

    @override
    def accept(self) -> tuple[socket.socket, Any]:
        """As of a socket that does not block.

        Raises:
            BlockingIOError: there is none, or one that makes room is not closed yet.
            ConnectionAbortedError: there were too many, and it was closed.
        """
        if self.connections.is_closing:
            raise BlockingIOError
        accepted, address = super().accept()
        connection = _Connection(accepted.family, accepted.type, accepted.proto, accepted.detach())
        peer = str(address[0]), int(address[1])
        if not self.connections.admit(peer, connection.hang_up):
            connection.close()
            raise ConnectionAbortedError(f"too many connections, of which some from {peer[0]}")
        connection.on_close = weakref.finalize(connection, self.connections.release, peer)
        connection.on_close.atexit = False
        return connection, address


class _Connection(socket.socket):
    on_close: "weakref.finalize[..., _Connection] | None" = None

    def hang_up(self) -> None:
        """End it for both sides; whoever serves it closes it then."""
        with contextlib.suppress(OSError):  # it has just been closed
            self.shutdown(socket.SHUT_RDWR)

    @override
    def close(self) -> None:
        super().close()
        if self.on_close is not None and self.fileno() == -1:
            self.on_close()
