"""The store that the members of a world find one another through, asked as Horovod's workers ask."""

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from edt_launch.worlds import gloo_store
from edt_launch.worlds.gloo_store import MAX_BODY, MAX_HEAD, Rendezvous

TOKEN = "of-the-job"


@pytest.fixture
def store() -> Iterator[Rendezvous]:
    rendezvous = Rendezvous("127.0.0.1", TOKEN, {"rank_and_size/here:0": b"0,1,0,1,0,1"})
    yield rendezvous
    rendezvous.close()


def connect(store: Rendezvous) -> socket.socket:
    return socket.create_connection(("127.0.0.1", store.port), timeout=30)


def receive(connection: socket.socket) -> tuple[str, bytes]:
    with connection, connection.makefile("rb") as answer:
        head, _, body = answer.read().partition(b"\r\n\r\n")
    return head.decode().splitlines()[0].removeprefix("HTTP/1.1 "), body


def request(method: str, path: str, body: bytes = b"", token: str = TOKEN) -> bytes:
    fields = f"Authorization: Bearer {token}\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n"
    return f"{method} {path} HTTP/1.1\r\n{fields}\r\n".encode() + body


def send(store: Rendezvous, method: str, path: str, body: bytes = b"") -> socket.socket:
    connection = connect(store)
    connection.sendall(request(method, path, body))
    return connection


def ask(store: Rendezvous, method: str, path: str, body: bytes = b"") -> tuple[str, bytes]:
    return receive(send(store, method, path, body))


def test_what_is_put_is_got_byte_by_byte(store: Rendezvous) -> None:
    addresses = bytes(range(256)) * 100
    assert ask(store, "PUT", "/global/0", addresses) == ("200 OK", b"")
    assert ask(store, "GET", "/global/0") == ("200 OK", addresses)
    assert ask(store, "GET", "/rank_and_size/here:0") == ("200 OK", b"0,1,0,1,0,1")


def test_a_question_waits_for_its_answer(store: Rendezvous) -> None:
    waiting = [send(store, "GET", "/global/1") for _ in range(3)]
    answers: list[tuple[str, bytes]] = []
    threads = [threading.Thread(target=lambda c=c: answers.append(receive(c))) for c in waiting]
    for thread in threads:
        thread.start()
    assert ask(store, "GET", "/rank_and_size/here:0")[0] == "200 OK"  # others are not held up
    assert answers == []
    ask(store, "PUT", "/global/1", b"there")
    for thread in threads:
        thread.join()
    assert answers == [("200 OK", b"there")] * 3


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
@pytest.mark.parametrize("token", ["of-another-job", "", "ä"])
def test_who_does_not_know_the_token_learns_and_changes_nothing(
    store: Rendezvous, method: str, token: str
) -> None:
    with connect(store) as connection:
        connection.sendall(request(method, "/rank_and_size/here:0", b"mine", token))
        assert receive(connection) == ("403 Forbidden", b"")
    without = connect(store)
    without.sendall(f"{method} /rank_and_size/here:0 HTTP/1.1\r\nContent-Length: 4\r\n\r\nmine".encode())
    assert receive(without) == ("403 Forbidden", b"")
    assert ask(store, "GET", "/rank_and_size/here:0") == ("200 OK", b"0,1,0,1,0,1")


@pytest.mark.parametrize(
    "nonsense",
    [
        b"hello\r\n\r\n",
        b"PUT /a/b HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"PUT /a/b HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY + 1),
        b"x" * (MAX_HEAD + 1),
        b"PUT /a/b HTTP/1.1\r\nHost: %b\r\n\r\n" % (b"x" * MAX_HEAD),
    ],
)
def test_nonsense_is_refused(store: Rendezvous, nonsense: bytes) -> None:
    connection = connect(store)
    connection.sendall(nonsense)
    assert receive(connection) == ("400 Bad Request", b"")
    assert ask(store, "GET", "/rank_and_size/here:0")[0] == "200 OK"


def has_ended(connection: socket.socket) -> bool:
    """Whether the other side ends the connection without an answer."""
    try:
        return connection.recv(100) == b""
    except ConnectionResetError:
        return True


def test_strangers_make_room_for_workers(store: Rendezvous, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gloo_store, "MAX_CONNECTIONS", 2)
    waiting = send(store, "GET", "/global/1")
    while not store._waiting:  # it has not shown the token yet
        time.sleep(0.01)
    with connect(store) as stranger:
        assert ask(store, "PUT", "/global/1", b"there") == ("200 OK", b"")
        assert has_ended(stranger)
    assert receive(waiting) == ("200 OK", b"there")


def test_a_void_world_keeps_nobody_waiting(store: Rendezvous) -> None:
    waiting = send(store, "GET", "/global/1")
    store.void()
    assert receive(waiting) == ("200 OK", b"-1")
    assert ask(store, "GET", "/rank_and_size/here:0") == ("200 OK", b"-1")
    assert ask(store, "PUT", "/global/0", b"mine") == ("200 OK", b"")
