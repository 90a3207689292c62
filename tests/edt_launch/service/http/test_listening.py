import contextlib
import socket
from collections.abc import Iterator

import pytest

from edt_launch.service.errors import UnavailableError
from edt_launch.service.http.listening import Connections, Listener


class Open:
    """Connections, and which of them were closed to make room."""

    def __init__(self, most: int, most_of_address: int) -> None:
        self.connections = Connections(most, most_of_address)
        self.closed: list[tuple[str, int]] = []

    def admit(self, address: str, port: int) -> bool:
        peer = address, port
        return self.connections.admit(peer, lambda: self.closed.append(peer))


def test_the_one_that_waits_longest_makes_room() -> None:
    one = Open(3, 3)
    assert all(one.admit("a", port) for port in range(3))
    assert one.closed == []
    assert one.admit("b", 0)
    assert one.closed == [("a", 0)]
    one.connections.release(("a", 0))  # it is closed later than it was told to
    assert one.admit("b", 1)
    assert one.closed == [("a", 0), ("a", 1)]


def test_a_request_that_is_accepted_makes_room_for_nobody() -> None:
    one = Open(2, 2)
    assert all(one.admit("a", port) for port in range(2))
    with one.connections.busy(("a", 0), "ann"):
        assert one.admit("b", 0)
        assert one.closed == [("a", 1)]
        with one.connections.busy(("b", 0), "bob"):
            assert not one.admit("c", 0)
        assert one.admit("c", 0)
    assert one.closed == [("a", 1), ("b", 0)]


def test_one_user_cannot_have_all_connections_of_an_address() -> None:
    one = Open(99, 8)
    assert one.connections.most_of_user == 2
    for port in range(8):
        assert one.admit("a", port)
    with contextlib.ExitStack() as stack:
        for port in range(2):
            stack.enter_context(one.connections.busy(("a", port), "mallory"))
        with pytest.raises(UnavailableError, match="2 of your requests"):
            stack.enter_context(one.connections.busy(("a", 2), "mallory"))
        stack.enter_context(one.connections.busy(("a", 2), "ann"))
        assert one.admit("a", 8)
        assert one.closed == [("a", 3)]
    with one.connections.busy(("a", 4), "mallory"):
        pass


@pytest.fixture
def listener() -> Iterator[Listener]:
    with Listener(socket.AF_INET, socket.SOCK_STREAM) as one:
        one.bind(("127.0.0.1", 0))
        one.listen()
        one.connections = Connections(2, 2)
        yield one


def test_connections_that_are_closed_are_counted_no_more(listener: Listener) -> None:
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(socket.create_connection(listener.getsockname())) for _ in range(3)]
        first, second = (stack.enter_context(listener.accept()[0]) for _ in range(2))
        first.close()
        third, peer = listener.accept()
        stack.enter_context(third)
        assert peer == clients[2].getsockname()
        third.sendall(b"there")
        second.sendall(b"there")
        assert (clients[1].recv(9), clients[2].recv(9), clients[0].recv(9)) == (b"there", b"there", b"")
