"""The launcher's port for workers, with strangers at it."""

import contextlib
import json
import queue
import select
import socket
from collections.abc import Iterator

import pytest

from edt_launch.launcher.control import ControlServer
from edt_messages.messages import Message

Received = queue.Queue[tuple[int, Message]]


@pytest.fixture
def received() -> Received:
    return queue.Queue()


@pytest.fixture
def server(received: Received) -> Iterator[ControlServer]:
    server = ControlServer("127.0.0.1", "token", lambda *told: received.put(told))
    yield server
    server.close()


def connect(server: ControlServer) -> socket.socket:
    ip, _, port = server.address.rpartition(":")
    return socket.create_connection((ip, int(port)), timeout=30)


def greets(server: ControlServer, received: Received) -> bool:
    """Whether a worker is heard."""
    with connect(server) as worker:
        worker.sendall(
            json.dumps({"type": "hello", "token": "token", "worker": 3, "pid": 1}).encode() + b"\n"
        )
        number, _ = received.get(timeout=30)
        return number == 3


@pytest.mark.parametrize(
    "junk",
    [
        *(b"1\n", b'"x"\n', b"null\n", b"[" * 100_000 + b"\n", b"\xff\n", b"{}\n", b"GET / HTTP/1.1\r\n\r\n"),
        b'{"type": "hello", "token": "wrong", "worker": 7}\n',
        b'{"type": "at_rendezvous", "progress": 1}\n',
    ],
)
def test_junk_of_strangers_ends_their_connection_alone(
    server: ControlServer, received: Received, junk: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    with connect(server) as stranger:
        stranger.sendall(junk)
        assert stranger.recv(1) == b""
    assert greets(server, received)
    assert capfd.readouterr().err == ""


def test_strangers_hold_no_place_and_do_not_stay(received: Received) -> None:
    def new(**limits: float) -> ControlServer:
        return ControlServer("127.0.0.1", "token", lambda *told: received.put(told), **limits)  # type: ignore[arg-type]

    server = new(max_unauthenticated=2)
    with contextlib.ExitStack() as stack:
        strangers = [stack.enter_context(connect(server)) for _ in range(20)]
        for stranger in strangers[:-2]:  # each has made room for a later one
            assert stranger.recv(1) == b""
        assert greets(server, received)
        server.close()
        server = new(hello_timeout=0.1)
        slow = stack.enter_context(connect(server))
        with contextlib.suppress(OSError):
            while True:  # a byte now and then does not lengthen its time
                slow.sendall(b" ")
                if select.select([slow], [], [], 0.01)[0] and slow.recv(1) == b"":
                    break
        server.close()
