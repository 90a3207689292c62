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


@pytest.mark.parametrize("line", [b"", encode(REQUEST)[:-9], encode(Ready()), b"\xff\n"])
def test_anything_else_is_told_in_the_log(line: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    assert received(line) is None
    assert "no request: " in capsys.readouterr().out


@pytest.mark.parametrize(
    "workers, idle, agent_gone, expected",
    [
        (1, 1e6, True, None),
        (0, 0.0, True, "the agent has gone"),
        (0, IDLE_LIMIT - 1, False, None),
        (0, IDLE_LIMIT, False, "no worker for 60 s"),
    ],
)
def test_it_ends_without_workers_when_the_agent_has_gone_or_nobody_asks(
    workers: int, idle: float, agent_gone: bool, expected: str | None
) -> None:
    assert reason_to_end(workers, idle, agent_gone) == expected


def test_the_rest_of_a_request_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(server, "REQUEST_TIMEOUT", 0.01)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(encode(REQUEST)[:-9])
        assert server._receive(ours, server._request) is None
    assert "timed out" in capsys.readouterr().out
