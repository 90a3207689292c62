import os
import socket
from collections.abc import Iterator

import pytest

from edt_hvd.wmla.notebook.pool import Requests, lines_until
from edt_messages import wmla

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    kernel, ours = socket.socketpair()
    with kernel, ours:
        yield kernel, ours


TRAIN, LIMIT = wmla.Train(1, ("x",), 2), wmla.Limit(1)


def test_messages_are_taken_one_by_one_until_the_kernel_is_gone(pair: Pair) -> None:
    kernel, ours = pair
    requests = Requests(ours)
    sent = wmla.encode(TRAIN) + wmla.encode(LIMIT) + wmla.encode(TRAIN)
    kernel.sendall(sent[:-3])
    assert [requests.next(), requests.has_one, requests.next(), requests.has_one] == [
        *(TRAIN, True),
        *(LIMIT, False),
    ]
    kernel.sendall(sent[-3:])
    assert requests.next() == TRAIN
    kernel.close()
    assert requests.next() is None


def test_a_kernel_that_dies_before_it_has_read_the_last_message_is_gone(pair: Pair) -> None:
    kernel, ours = pair
    ours.sendall(b"x")
    kernel.close()
    assert Requests(ours).next() is None


def test_output_comes_in_lines_and_the_kernel_is_noticed_in_between(pair: Pair) -> None:
    kernel, ours = pair
    requests = Requests(ours)
    output, end = os.pipe()
    os.write(end, b"one\ntw")
    lines = lines_until(output, requests)
    assert next(lines) == b"one"
    kernel.sendall(wmla.encode(LIMIT) * 2)
    for _ in range(2):  # the second has been received with the first
        assert next(lines) is None
        assert requests.next() == LIMIT
    os.write(end, b"o\n")
    assert next(lines) == b"two"
    os.close(end)
    assert list(lines) == []
    os.close(output)
