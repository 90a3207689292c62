"""The agent's end of a worker's connection to its warm server; the rest is in test_agent."""

import socket

import pytest

from edt_launch.agent.warm.server import Request
from edt_messages.forking import Forked, Ready, encode


@pytest.fixture
def sockets():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_answers_come_in_whatever_pieces(sockets):
    ours, theirs = sockets
    request = Request(ours, b"")
    line = encode(Ready()) + encode(Forked(7))
    theirs.sendall(line[:-4])
    assert request.answers() == [Ready()]
    theirs.sendall(line[-4:])
    assert request.answers() == [Forked(7)]
    theirs.close()
    assert request.answers() is None


@pytest.mark.parametrize("line", [b"no\n", b'{"type": "forked", "pid": "7"}\n', b'{"type": "sung"}\n'])
def test_a_server_that_sends_no_message_counts_as_gone(sockets, capsys, line):
    ours, theirs = sockets
    theirs.sendall(line)
    assert Request(ours, b"").answers() is None
    assert "the warm server has sent" in capsys.readouterr().err
