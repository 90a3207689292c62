"""What a warm server takes for a request, and when it ends."""

import socket

import pytest

from edt_hvd.warm import server
from edt_hvd.warm.server import IDLE_LIMIT, reason_to_end
from edt_messages.forking import Fork, Ready, encode

REQUEST = Fork("train.py", None, (), ("python", "train.py"), "/", {"A": "b"}, 0)


def received(line: bytes) -> Fork | None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(line)
        theirs.shutdown(socket.SHUT_WR)
        return server._receive(ours, server._request)


def test_a_request() -> None:
    assert received(encode(REQUEST)) == REQUEST


@pytest.mark.parametrize("line", [b"", encode(REQUEST)[:-9], encode(Ready()), b"\xff\n"])
def test_anything_else_is_told_in_the_log(line: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    assert received(line) is None
    assert "no request: " in capsys.readouterr().out


@pytest.mark.parametrize("gone", [False, True])
def test_stays_as_long_as_it_has_workers(gone: bool) -> None:
    assert reason_to_end(workers=1, idle=1e6, agent_gone=gone) is None


def test_ends_with_the_agent() -> None:
    assert reason_to_end(workers=0, idle=0.0, agent_gone=True) == "the agent has gone"


def test_waits_for_the_next_worker_for_a_while() -> None:
    assert reason_to_end(workers=0, idle=IDLE_LIMIT - 1, agent_gone=False) is None
    assert reason_to_end(workers=0, idle=IDLE_LIMIT, agent_gone=False) == "no worker for 60 s"
