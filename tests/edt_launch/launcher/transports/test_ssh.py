"""How an agent on another host is started, and what ssh's last words mean."""

import sys
from pathlib import Path

import pytest

from edt_launch.launcher.transports.ssh import Ssh


def test_the_command_line() -> None:
    python = sys.executable
    words = Ssh(2222, Path("/my keys/id")).command("node1")
    assert words == [
        *("ssh", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=accept-new"),
        *("-o", "ConnectTimeout=10"),
        *("-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"),
        *("-p", "2222", "-i", "/my keys/id", "node1"),
        f"exec sh -c '[ -x {python} ] && exec {python} -P -m edt_launch.agent; exec edt agent'",
    ]
    assert "-p" not in Ssh().command("node1")
    assert "-i" not in Ssh().command("node1")


CHANGED = ["@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @", "Host key verification failed."]


@pytest.mark.parametrize(
    "said, transport, words",
    [
        (CHANGED, Ssh(2222), "run: ssh-keygen -R '[node1]:2222'"),
        (["me@node1: Permission denied (publickey)."], Ssh(), "run: ssh-copy-id node1"),
        (["sh: 1: exec: /env/bin/python: not found"], Ssh(), "missing on node1"),
        (["/env/bin/python: No module named edt_launch"], Ssh(), "missing on node1"),
        (["ModuleNotFoundError: No module named 'psutil'"], Ssh(), "EDT on node1 lacks the package psutil"),
    ],
)
def test_what_to_do(said: list[str], transport: Ssh, words: str) -> None:
    explained = transport.explain("node1", said)
    assert explained is not None
    assert words in explained
