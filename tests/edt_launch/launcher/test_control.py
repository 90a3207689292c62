"""The launcher's port for workers, with strangers at it."""

import json
import queue
import socket
from collections.abc import Iterator

import pytest

from edt_launch.launcher import control
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


@pytest.mark.parametrize("junk", [b"1\n", b'"x"\n', b"null\n", b"[" * 100_000 + b"\n", b"\xff\n", b"{}\n"])
def test_junk_of_strangers_ends_their_connection_alone(
    server: ControlServer, received: Received, junk: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    with connect(server) as stranger:
        stranger.sendall(junk)
        assert stranger.recv(1) == b""
    assert greets(server, received)
    assert capfd.readouterr().err == ""


def test_strangers_are_few_and_do_not_stay(received: Received, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "STRANGERS", 2)
    monkeypatch.setattr(control, "HELLO_TIMEOUT", 0.2)
    server = ControlServer("127.0.0.1", "token", lambda *told: received.put(told))
    strangers = [connect(server) for _ in range(20)]
    for stranger in strangers:  # the first are given up in time, the others at once
        with stranger:
            assert stranger.recv(1) == b""
    monkeypatch.setattr(control, "HELLO_TIMEOUT", 30.0)
    assert greets(server, received)
    server.close()
