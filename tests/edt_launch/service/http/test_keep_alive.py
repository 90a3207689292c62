"""Clients that poll on a connection that they keep, over real sockets, with a clock that jumps."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests
from typing_extensions import override

from databases import sqlite_at
from edt_launch.service.app.opening import listening_socket
from edt_launch.service.app.running import _server
from edt_launch.service.app.settings import Settings
from edt_launch.service.http.listening import Connections, Listener, Peer
from edt_launch.service.http.protocol import HEAD, KEEP_ALIVE
from serving import PATIENCE, until
from world import World

PATHS = (
    "/platform/rest/deeplearning/v1/execs",
    "/platform/rest/conductor/v1/instances/dli/applications",
    "/platform/rest/deeplearning/v1/scheduler/engine/applications",
    "/api/v1/jobs",
    "/healthz",
)


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop whose timers see the time that `advance` lets pass."""

    ahead = 0.0

    @override
    def time(self) -> float:
        return super().time() + self.ahead

    def advance(self, seconds: float) -> None:
        passed = threading.Event()

        def jump() -> None:
            self.ahead += seconds
            # The timers that are due by now come first, and then what they have begun, such as closing.
            self.call_later(0, self.call_soon, passed.set)

        self.call_soon_threadsafe(jump)
        assert passed.wait(PATIENCE)


class Counted(Connections):
    """Connections, and how many there have been."""

    opened = 0

    @override
    def admit(self, peer: Peer, close: Callable[[], None]) -> bool:
        self.opened += 1
        return super().admit(peer, close)


class Polled:
    """A service that is polled."""

    def __init__(self, world: World, loop: JumpingLoop, listening: Listener) -> None:
        host, port = listening.getsockname()
        self.loop, self.token, self.connections = loop, world.tokens["ann"], Counted(999, 999)
        listening.connections = self.connections
        self.address = host, port
        self.url = f"http://{host}:{port}"

    def session(self) -> requests.Session:
        session = requests.Session()
        session.headers["Authorization"] = f"Bearer {self.token}"
        return session


@pytest.fixture
def polled(tmp_path: Path) -> Iterator[Polled]:
    settings = Settings(home=tmp_path / "home", port=0)
    world = World(settings.home, sqlite_at(tmp_path / "edt.db"), allowed_hosts="*")
    with (
        contextlib.closing(world.store),
        listening_socket(settings) as listening,
        asyncio.Runner(loop_factory=JumpingLoop) as runner,
    ):
        loop = runner.get_loop()
        assert isinstance(loop, JumpingLoop)
        polled = Polled(world, loop, listening)
        server = _server(world.context, (None, None), polled.connections)
        thread = threading.Thread(target=lambda: runner.run(server.serve([listening])))
        thread.start()
        try:
            until(lambda: server.started)
            yield polled
        finally:
            server.should_exit = True
            thread.join()


def test_idle_connections_are_kept_for_75_seconds_and_closed_in_the_end(polled: Polled) -> None:
    """Whatever a client polls."""
    with polled.session() as session:
        for path in PATHS:
            assert session.get(f"{polled.url}{path}", timeout=PATIENCE).status_code == 200, path
            polled.loop.advance(75.0)
        assert polled.connections.opened == 1
        session.get(f"{polled.url}/healthz", timeout=PATIENCE)
        polled.loop.advance(KEEP_ALIVE + 1)
        session.get(f"{polled.url}/healthz", timeout=PATIENCE)
        assert polled.connections.opened == 2


def test_the_head_of_a_request_has_a_time_be_it_the_first_or_a_later_one(polled: Polled) -> None:
    with socket.create_connection(polled.address, timeout=PATIENCE) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        received = b""
        while not received.endswith(b"}"):
            received += connection.recv(4096)
        polled.loop.advance(60)
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: local")
        with socket.create_connection(polled.address, timeout=PATIENCE) as other:
            other.sendall(b"G")
            # What is sent later is read later.
            assert requests.get(f"{polled.url}/healthz", timeout=PATIENCE).ok
            polled.loop.advance(HEAD + 1)
            for one in (connection, other):
                assert one.recv(4096).startswith(b"HTTP/1.1 408 ")
