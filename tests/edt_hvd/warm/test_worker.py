"""A forked worker before its program begins."""

import socket

import pytest

from edt_hvd.warm import worker


def test_a_worker_whose_agent_is_gone_never_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    def end(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr("os._exit", end)
    agents, own = socket.socketpair()
    agents.close()
    with own, pytest.raises(SystemExit):
        worker._kill_group_when_peer_closes(own.fileno())
