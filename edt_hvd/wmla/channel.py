"""How results get from the executors to the driver: lines of JSON over TCP, and a line back for each taken.

The driver listens; the payload has its addresses and a token, which is the first line of every connection.
One executor at a time sends, the coordinator, which closes its connection when it is no longer. The driver
reads connections to their end in the order in which they were made. So when the coordinator changes, all that
the old one has sent comes first; the new one sends again what may be lost with it, and the driver drops
what it knows (`results.Order`). What may be lost is what the driver has not taken yet: it says how many
messages of a connection it has.
"""

import contextlib
import hmac
import json
import queue
import secrets
import selectors
import socket
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import psutil

import edt_hvd
from edt_hvd.wmla.errors import WmlaError
from edt_hvd.wmla.results import Message, decode, encode

CONNECT_TIMEOUT = 20.0
"""Seconds to connect to one of the driver's addresses."""

HEARTBEAT = 1.0
"""Seconds after which an executor that waits for the driver says that it gets on."""

LARGEST_LINE = 64 * 2**20
"""Bytes of a message; a connection that sends more is closed."""

KEEPALIVE = (
    ((socket.SOL_SOCKET, socket.SO_KEEPALIVE), 1),
    ((socket.IPPROTO_TCP, socket.TCP_KEEPIDLE), 10),
    ((socket.IPPROTO_TCP, socket.TCP_KEEPINTVL), 5),
    ((socket.IPPROTO_TCP, socket.TCP_KEEPCNT), 4),
)
"""The connection to a host that is lost ends after half a minute."""


SILENCE = 60.0
"""Seconds that a newer connection waits for an older one that says nothing: its process may be stopped."""


@dataclass(frozen=True)
class Address:
    """Where the driver listens, and what lets an executor in."""

    hosts: tuple[str, ...]
    port: int
    token: str


class Listener:
    """The driver's end.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._server = socket.create_server(("", 0), family=socket.AF_INET, backlog=64)
        port = self._server.getsockname()[1]
        self.address = Address(_own_hosts(), port, secrets.token_hex(16))
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._server, selectors.EVENT_READ)
        self._received: dict[socket.socket, bytes] = {}
        """What is not taken yet, by connection, the oldest first."""
        self._taken: dict[socket.socket, int] = {}
        self._trusted: set[socket.socket] = set()
        self._ended: set[socket.socket] = set()
        self._silent_since: float | None = None

    def fileno(self) -> int:
        """For `select`: readable when there is something to receive."""
        return self._selector.fileno()

    def receive(self, take: Callable[[Message], None], timeout: float | None = 0) -> bool:
        """Have `take` called with what has come, and wait up to `timeout` seconds for it.

        Returns:
            Whether anything has happened in that time.

        Raises:
            ValueError: an executor sent something that is no message.
        """
        ready = self._selector.select(timeout)
        for key, _ in ready:
            if key.fileobj is self._server:
                self._accept()
            else:
                assert isinstance(key.fileobj, socket.socket)
                self._read(key.fileobj)
        if self._is_held_up({key.fileobj for key, _ in ready}):
            self.give_up_oldest()
        self._take_in_turn(take)
        return bool(ready)

    def give_up_oldest(self) -> None:
        """Close the oldest connection: the rest of what was sent over it will not come any more."""
        self._drop(next(iter(self._received)))
        self._listen_in_turn()

    def _is_held_up(self, ready: Collection[object]) -> bool:
        """Whether the oldest connection has been silent too long while a newer one waits for it."""
        trusted = [connection for connection in self._received if connection in self._trusted]
        if len(trusted) < 2 or trusted[0] in ready or trusted[0] in self._ended:
            self._silent_since = None
            return False
        now = self._clock()
        self._silent_since = now if self._silent_since is None else self._silent_since
        return now - self._silent_since > SILENCE

    @property
    def has_connections(self) -> bool:
        """Whether an executor may still have something to say."""
        return bool(self._received)

    def close(self) -> None:
        """Close everything."""
        for connection in list(self._received):
            self._drop(connection)
        self._selector.close()
        self._server.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # gone again
            connection, _ = self._server.accept()
            connection.setblocking(False)
            for option, value in KEEPALIVE:
                connection.setsockopt(*option, value)
            self._selector.register(connection, selectors.EVENT_READ)
            self._received[connection] = b""
            self._taken[connection] = 0

    def _read(self, connection: socket.socket) -> bool:
        """Whether anything has come, or the end."""
        try:
            part = connection.recv(2**20)
        except BlockingIOError:
            return False
        except OSError:  # an executor that was killed
            part = b""
        self._received[connection] += part
        if not part:
            self._ended.add(connection)
            if connection in self._selector.get_map():
                self._selector.unregister(connection)
        if connection not in self._trusted:
            self._check_token(connection)
        return True

    def _check_token(self, connection: socket.socket) -> None:
        first, separator, rest = self._received[connection].partition(b"\n")
        if separator and hmac.compare_digest(first, self.address.token.encode()):
            self._trusted.add(connection)
            self._received[connection] = rest
        elif separator or connection in self._ended or len(first) > LARGEST_LINE:
            self._drop(connection)

    def _take_in_turn(self, take: Callable[[Message], None]) -> None:
        """Have the oldest connection's messages taken, and the next one's once it has ended."""
        for connection in [each for each in self._received if each in self._trusted]:
            while b"\n" in self._received[connection]:
                *lines, self._received[connection] = self._received[connection].split(b"\n")
                for line in lines:
                    take(decode(line))
                    self._acknowledge(connection)
            if connection not in self._ended and len(self._received[connection]) <= LARGEST_LINE:
                break
            self._drop(connection)
        self._listen_in_turn()

    def _acknowledge(self, connection: socket.socket) -> None:
        """Say that one more message is taken; not before all that has come is read.

        An executor that was killed answers by dropping what it has not delivered yet. The word is small, and
        an executor that does not read it sends no more, so there is always room for it.
        """
        self._taken[connection] += 1
        while connection not in self._ended and self._read(connection):
            pass
        with contextlib.suppress(OSError):  # an executor that was killed
            connection.send(json.dumps({"taken": self._taken[connection]}).encode() + b"\n")

    def _listen_in_turn(self) -> None:
        """Wait for the oldest connection, and for those that have not said yet who they are."""
        registered = {key.fileobj for key in self._selector.get_map().values()}
        trusted = [connection for connection in self._received if connection in self._trusted]
        for later in trusted[1:]:
            if later in registered:
                self._selector.unregister(later)
        for first in trusted[:1]:
            if first not in registered and first not in self._ended:
                self._selector.register(first, selectors.EVENT_READ)

    def _drop(self, connection: socket.socket) -> None:
        del self._received[connection], self._taken[connection]
        if connection not in self._ended and connection in self._selector.get_map():
            self._selector.unregister(connection)
        self._trusted.discard(connection)
        self._ended.discard(connection)
        connection.close()


@dataclass
class _Stream:
    """What is sent over one connection."""

    lines: "queue.SimpleQueue[bytes | None]" = field(default_factory=queue.SimpleQueue)
    sent: int = 0
    taken: int = 0
    finished: bool = False


class Sender:
    """An executor's end. Sending does not wait for the driver; `wait` does."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._stream: _Stream | None = None
        self._threads: list[threading.Thread] = []
        self._failure: Exception | None = None
        self._changed = threading.Condition()

    def send(self, message: Message) -> None:
        """Send a message.

        Raises:
            WmlaError: the driver cannot be reached.
        """
        self._check()
        if self._stream is None:
            self._stream = _Stream()
            thread = threading.Thread(target=self._run, args=(self._stream,), name="results", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._stream.sent += 1
        self._stream.lines.put(encode(message))

    def wait(self, most: int) -> None:
        """Wait until at most `most` of the messages sent are not taken by the driver.

        As long as the connection lives, whoever waits for a slow logger does not hang.

        Raises:
            WmlaError: the driver cannot be reached.
        """
        stream = self._stream
        if stream is not None:
            with self._changed:
                while not self._changed.wait_for(
                    lambda: self._failure or stream.sent - stream.taken <= most, timeout=HEARTBEAT
                ):
                    edt_hvd.heartbeat()
            self._check()

    def finish(self) -> None:
        """Close the connection once everything is taken, without waiting for it; more messages open one."""
        if self._stream is not None:
            self._stream.finished = True
            self._stream.lines.put(None)
            self._stream = None

    def close(self) -> None:
        """Wait until everything is taken.

        Raises:
            WmlaError: it could not be.
        """
        self.finish()
        while self._threads:
            self._threads.pop().join()
        self._check()

    def _run(self, stream: _Stream) -> None:
        try:
            with _connect(self._address) as connection:
                reader = threading.Thread(target=self._read, args=(connection, stream), daemon=True)
                reader.start()
                connection.sendall(self._address.token.encode() + b"\n")
                while (line := stream.lines.get()) is not None:
                    connection.sendall(line)
                connection.shutdown(socket.SHUT_WR)  # loader processes may have inherited it
                reader.join()  # closing with something unread would drop what is on its way
        except OSError as error:
            self._fail(error)

    def _read(self, connection: socket.socket, stream: _Stream) -> None:
        """Read how much the driver has taken, until it closes the connection."""
        try:
            with connection.makefile("rb") as lines:
                for line in lines:
                    with self._changed:
                        stream.taken = json.loads(line)["taken"]
                        self._changed.notify_all()
            if not stream.finished or stream.taken < stream.sent:
                self._fail(ConnectionAbortedError("it has closed the connection"))
        except (OSError, ValueError) as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        with self._changed:
            self._failure = self._failure or error
            self._changed.notify_all()

    def _check(self) -> None:
        if self._failure is not None:
            where = f"{', '.join(self._address.hosts)} port {self._address.port}"
            raise WmlaError(
                f"the driver at {where} cannot be reached: {self._failure}; does it still run, and does a "
                "firewall let this host connect?"
            ) from self._failure


def _connect(address: Address) -> socket.socket:
    failure: OSError = ConnectionRefusedError("it has no address")
    for host in address.hosts:
        try:
            connection = socket.create_connection((host, address.port), timeout=CONNECT_TIMEOUT)
        except OSError as error:
            failure = error
        else:
            connection.settimeout(None)
            for option, value in KEEPALIVE:
                connection.setsockopt(*option, value)
            return connection
    raise failure


def _own_hosts() -> tuple[str, ...]:
    """The addresses of this machine, those that only it reaches last."""
    found = [
        each.address
        for name, addresses in sorted(psutil.net_if_addrs().items())
        for each in addresses
        if each.family == socket.AF_INET
    ]
    return tuple(sorted(dict.fromkeys([*found, "127.0.0.1"]), key=lambda host: host.startswith("127.")))
