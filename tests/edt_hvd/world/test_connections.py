import socket
from collections.abc import Callable

import pytest

import gloo_like
from edt_hvd.world import connections


def test_only_what_was_opened_since_is_cut() -> None:
    mine, peer_of_mine = gloo_like.pair()
    before = connections.open_now()
    theirs, peer_of_theirs = gloo_like.pair()
    listening = gloo_like.listener()
    with mine, peer_of_mine, theirs, peer_of_theirs, listening:
        opened = connections.opened_since(before)
        assert {descriptor for descriptor, _ in opened} == {
            s.fileno() for s in (theirs, peer_of_theirs, listening)
        }
        assert connections.cut(opened) == 2
        assert theirs.recv(1) == b""
        mine.sendall(b"x")
        assert peer_of_mine.recv(1) == b"x"


def test_a_descriptor_used_again_for_another_socket_is_left_alone() -> None:
    before = connections.open_now()
    first, other = gloo_like.pair()
    opened = connections.opened_since(before)
    first.close()
    other.close()
    mine, peer = gloo_like.pair()
    with mine, peer:
        assert connections.cut(opened) == 0
        mine.sendall(b"x")
        assert peer.recv(1) == b"x"


def test_connections_that_are_closed_already_are_passed_over() -> None:
    before = connections.open_now()
    first, other = gloo_like.pair()
    opened = connections.opened_since(before)
    first.close()
    other.close()
    assert connections.cut(opened) == 0


def test_breaking_off_ends_the_wait_for_a_connection() -> None:
    before = connections.open_now()
    with gloo_like.listener() as listening:
        opened = connections.opened_since(before)
        assert connections.cut(opened) == 0
        assert connections.break_off(opened) == 1
        listening.settimeout(30)
        with pytest.raises(OSError, match="Invalid argument"):
            listening.accept()


def unix() -> tuple[socket.socket, ...]:
    return socket.socketpair()


def without_timeouts() -> tuple[socket.socket, ...]:
    pair = gloo_like.pair()
    for each in pair:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, bytes(16))
    return pair


def a_clients() -> tuple[socket.socket, ...]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = socket.create_connection(listening.getsockname())
        return client, listening.accept()[0]


def a_servers() -> tuple[socket.socket, ...]:
    return (socket.create_server(("", 0)),)


def datagrams() -> tuple[socket.socket, ...]:
    one = socket.socket(type=socket.SOCK_DGRAM)
    one.bind(("127.0.0.1", 0))
    one.connect(one.getsockname())
    return (one,)


@pytest.mark.parametrize(
    "opened, may_be", [(unix, 0), (without_timeouts, 2), (a_clients, 1), (a_servers, 0), (datagrams, 0)]
)
def test_what_the_script_has_opened_is_left_alone(
    opened: Callable[[], tuple[socket.socket, ...]], may_be: int
) -> None:
    before = connections.open_now()
    sockets = opened()
    found = connections.opened_since(before)
    try:
        assert len(found) == len(sockets)
        assert connections.cut(found) == 0
        assert connections.break_off(found) == may_be
    finally:
        for each in sockets:
            each.close()
