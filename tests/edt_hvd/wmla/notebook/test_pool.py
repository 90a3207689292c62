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


def test_messages_are_taken_whole_until_the_kernel_is_gone(pair: Pair) -> None:
    kernel, ours = pair
    requests = Requests(ours)
    train, limit = wmla.Train(1, ("x",), 2), wmla.Limit(1)
    sent = wmla.encode(train) + wmla.encode(limit)
    kernel.sendall(sent[:-3])
    assert requests.take() == [train]
    kernel.sendall(sent[-3:])
    assert requests.take() == [limit]
    kernel.close()
    assert requests.take() is None


def test_output_comes_in_lines_and_the_kernel_is_noticed_in_between(pair: Pair) -> None:
    kernel, ours = pair
    output, end = os.pipe()
    os.write(end, b"one\ntw")
    lines = lines_until(output, ours)
    assert next(lines) == b"one"
    kernel.sendall(b"x")
    assert next(lines) is None
    assert ours.recv(1) == b"x"
    os.write(end, b"o\n")
    assert next(lines) == b"two"
    os.close(end)
    assert list(lines) == []
    os.close(output)
