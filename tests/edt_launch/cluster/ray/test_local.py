import io
import signal
import sys

import pytest

from edt_launch.cluster.ray import local


class Cluster:
    """Whose nodes do not start."""

    address = "127.0.0.1:6379"

    def __init__(self, *options: object) -> None:
        pass

    def add(self, name: str) -> None:
        raise TimeoutError(f"{name} has not joined\nin time")

    def drain(self, name: str) -> None:
        if name != "n2":
            raise KeyError(name)

    def close(self) -> None:
        print("closed")


def test_each_command_is_answered_and_a_node_that_does_not_start_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(local, "LocalCluster", Cluster)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["local", "2", "--folder", "/tmp/x"])
    monkeypatch.setattr(sys, "stdin", io.StringIO("add n3\ndrain n2\ndrain n9\nfly n2\n"))
    local.main()
    assert capsys.readouterr().out.splitlines() == [
        "edt: 127.0.0.1:6379",
        "edt: add n3: TimeoutError: n3 has not joined",
        "edt: drain n2: done",
        "edt: there is no node 'n9'; the first one is the head, which stays",
        "edt: expected one of add, drain, remove, kill, and a name",
        "closed",
    ]
