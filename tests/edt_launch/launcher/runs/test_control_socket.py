"""The launcher's socket: who may ask, what garbage does, and that nobody is waited for."""

import os
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from edt_launch.core.control_protocol import MAX_LINE, Accepted, Pause, Refused, Stop, read_reply, write
from edt_launch.core.system.unix_address import unix_address
from edt_launch.launcher.runs.control_socket import CONNECTIONS, ControlSocket

Connect = Callable[[], socket.socket]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / ("a long folder's name " * 10) / "run"
    folder.mkdir(parents=True)
    return folder / "control"


def no_complaint(text: str) -> None:
    raise AssertionError(text)


@pytest.fixture
def control(path: Path) -> Iterator[ControlSocket]:
    with ControlSocket(path, no_complaint) as control:
        yield control


@pytest.fixture
def connect(path: Path) -> Iterator[Connect]:
    made: list[socket.socket] = []

    def connect() -> socket.socket:
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(60.0)  # so that a failure ends
        made.append(client)
        with unix_address(path) as address:
            client.connect(address)
        return client

    yield connect
    for client in made:
        client.close()


def reply(client: socket.socket) -> object:
    with client.makefile("rb") as lines:
        return read_reply(lines.readline())


def test_a_request_is_acknowledged_and_taken_in_once(control: ControlSocket, connect: Connect) -> None:
    first, second = connect(), connect()
    first.sendall(write(Pause("a")))
    second.sendall(write(Pause("a"))[:-1])
    assert control.requests() == [Pause("a")]
    second.sendall(b"\n" + write(Stop("b")))
    assert control.requests() == [Stop("b")]
    assert reply(first) == Accepted("a")
    with second.makefile("rb") as lines:
        assert [read_reply(lines.readline()) for _ in range(2)] == [Accepted("a"), Accepted("b")]


def test_it_is_there_for_its_user_alone_and_gone_afterwards(path: Path) -> None:
    mask = os.umask(0)
    try:
        with ControlSocket(path, no_complaint):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
    finally:
        os.umask(mask)
    assert not path.exists()


def test_another_user_is_refused(path: Path, connect: Connect) -> None:
    with ControlSocket(path, no_complaint, peer_user=lambda _: os.geteuid() + 1) as control:
        client = connect()
        client.sendall(write(Stop("a")))
        assert control.requests() == []
        assert reply(client) == Refused(None, "this launcher belongs to another user")


@pytest.mark.parametrize("garbage", [b"\n", b"\0\xff\n", b"GET / HTTP/1.1\r\n", b"[" * 1000 + b"\n"])
def test_garbage_is_refused_and_what_follows_is_read(
    control: ControlSocket, connect: Connect, garbage: bytes
) -> None:
    client = connect()
    client.sendall(garbage + write(Pause("a")))
    assert control.requests() == [Pause("a")]
    with client.makefile("rb") as lines:
        assert isinstance(read_reply(lines.readline()), Refused)
        assert read_reply(lines.readline()) == Accepted("a")


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_an_endless_line_is_cut_off(control: ControlSocket, connect: Connect, end: bytes) -> None:
    client = connect()
    client.sendall(b"x" * (2 * MAX_LINE) + end)
    for _ in range(3):
        assert control.requests() == []
    assert reply(client) == Refused(None, f"a message of more than {MAX_LINE} bytes")


def test_who_comes_last_is_served_however_many_there_are(control: ControlSocket, connect: Connect) -> None:
    idle = []
    for _ in range(2 * CONNECTIONS):
        idle.append(connect())
        control.requests()
    client = connect()
    client.sendall(write(Stop("a")))
    assert control.requests() == [Stop("a")]
    assert reply(client) == Accepted("a")
    assert idle[0].recv(1) == b""


def test_who_never_reads_is_not_waited_for(control: ControlSocket, connect: Connect) -> None:
    deaf, other = connect(), connect()
    deaf.setblocking(False)
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 0)
    for _ in range(1000):
        try:
            deaf.send(b"\n" * MAX_LINE)
        except (BlockingIOError, BrokenPipeError):
            break
        control.requests()
    other.sendall(write(Pause("a")))
    assert control.requests() == [Pause("a")]
