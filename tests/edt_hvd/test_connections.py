import socket

import pytest

from edt_hvd import connections


def test_only_what_was_opened_since_is_cut() -> None:
    mine, peer_of_mine = socket.socketpair()
    before = connections.open_now()
    theirs, peer_of_theirs = socket.socketpair()
    listening = socket.create_server(("127.0.0.1", 0))
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
    first, other = socket.socketpair()
    opened = connections.opened_since(before)
    first.close()
    other.close()
    mine, peer = socket.socketpair()
    with mine, peer:
        assert connections.cut(opened) == 0
        mine.sendall(b"x")
        assert peer.recv(1) == b"x"


def test_connections_that_are_closed_already_are_passed_over() -> None:
    before = connections.open_now()
    first, other = socket.socketpair()
    opened = connections.opened_since(before)
    first.close()
    other.close()
    assert connections.cut(opened) == 0


def test_breaking_off_ends_the_wait_for_a_connection() -> None:
    before = connections.open_now()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        opened = connections.opened_since(before)
        assert connections.cut(opened) == 0
        assert connections.break_off(opened) == 1
        listening.settimeout(30)
        with pytest.raises(OSError, match="Invalid argument"):
            listening.accept()
