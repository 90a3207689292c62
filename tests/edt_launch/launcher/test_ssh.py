"""How an agent on another host is started, and what ssh's last words mean."""

import shlex
import sys
from pathlib import Path

import pytest

from edt_launch.launcher.ssh import Remote, command, explain


def test_the_command_line() -> None:
    words = command("node1", Remote(2222, Path("/my keys/id")))
    assert words == [
        *("ssh", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=accept-new"),
        *("-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"),
        *("-p", "2222", "-i", "/my keys/id", "node1", f"exec {sys.executable} -P -m edt_launch.agent"),
    ]
    assert "-p" not in command("node1", Remote())
    assert "-i" not in command("node1", Remote())


def test_a_shell_reads_the_interpreters_path_as_one_word() -> None:
    (line,) = command("node1", Remote(), ("/a path/python", "-m", "x"))[-1:]
    assert shlex.split(line) == ["exec", "/a path/python", "-m", "x"]


CHANGED = ["@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @", "Host key verification failed."]


@pytest.mark.parametrize(
    "said, remote, words",
    [
        (CHANGED, Remote(), "run: ssh-keygen -R node1"),
        (CHANGED, Remote(2222), "run: ssh-keygen -R '[node1]:2222'"),
        (["me@node1: Permission denied (publickey)."], Remote(), "run: ssh-copy-id node1"),
        (["sh: 1: exec: /env/bin/python: not found"], Remote(), "missing on node1"),
        (["python: No module named edt_launch"], Remote(), "missing on node1"),
    ],
)
def test_what_to_do(said: list[str], remote: Remote, words: str) -> None:
    explained = explain("node1", remote, said)
    assert explained is not None
    assert words in explained


def test_what_explains_itself() -> None:
    assert explain("node1", Remote(), ["ssh: connect to host node1 port 22: No route to host"]) is None
