"""Hosts of nobody's that a stand-in for ssh keeps on this machine."""

import socket
from pathlib import Path

import psutil
import pytest

ELSEWHERE = "198.51.100.7"
"""An address of nobody's, reserved for documentation: to Horovod a remote host."""

FAKE_SSH = """#!/bin/sh
# Drops ssh's options, notes the host, and lets a shell run the command as sshd would.
options() { while :; do case $1 in -[opi]) shift 2 ;; *) break ;; esac; done; echo $#; }
shift $(($# - $(options "$@")))
echo "$1" >> "$SSH_LOG"
shift
shift $(($# - $(options "$@")))
exec sh -c "$*"
"""


def outward_interface() -> str | None:
    for name, addresses in psutil.net_if_addrs().items():
        if any(a.family == socket.AF_INET and not a.address.startswith("127.") for a in addresses):
            return name
    return None


def reach(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[tuple[str, ...], Path]:
    """Options for one slot here and two elsewhere, and the file in which ssh notes its hosts."""
    interface = outward_interface()
    if interface is None:
        pytest.skip("this machine has no network interface but the loopback")
    ssh, log = folder / "bin" / "ssh", folder / "ssh.log"
    ssh.parent.mkdir()
    ssh.write_text(FAKE_SSH)
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", str(ssh.parent), prepend=":")
    monkeypatch.setenv("SSH_LOG", str(log))
    return ("-H", f"localhost:1,{ELSEWHERE}:2", "--network-interface", interface, "--ssh-port", "22"), log
