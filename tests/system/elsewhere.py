"""Hosts of nobody's that a stand-in for ssh keeps on this machine."""

import socket
import sys
from pathlib import Path

import psutil
import pytest

ELSEWHERE = "198.51.100.7"
"""An address of nobody's, reserved for documentation: a remote host."""

FAKE_SSH = """#!/bin/sh
# Drops ssh's options, notes the host, and lets a shell run the command as sshd would.
options() { while :; do case $1 in -[opi]) shift 2 ;; *) break ;; esac; done; echo $#; }
shift $(($# - $(options "$@")))
echo "$1" >> "$SSH_LOG"
shift
RUN "$*"
"""

# Like sshd, it stands between: the command outlives it, and hears nothing when it is killed.
RELAY = """
import os, subprocess, sys, threading
child = subprocess.Popen(["sh", "-c", sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
os.set_inheritable(child.stdin.fileno(), True)
holder = subprocess.Popen(["sleep", "60"], pass_fds=[child.stdin.fileno()], stdout=2)
def pump(read, write):
    while data := os.read(read, 65536):
        os.write(write, data)
    if write != 1:
        holder.kill()
        os.close(write)
threading.Thread(target=pump, args=(0, child.stdin.fileno()), daemon=True).start()
pump(child.stdout.fileno(), 1)
sys.exit(child.wait())
"""


def outward_interface() -> str | None:
    for name, addresses in psutil.net_if_addrs().items():
        if any(a.family == socket.AF_INET and not a.address.startswith("127.") for a in addresses):
            return name
    return None


def reach(
    folder: Path, monkeypatch: pytest.MonkeyPatch, relayed: bool = False
) -> tuple[tuple[str, ...], Path]:
    """Options for one slot here and two elsewhere, and the file in which ssh notes its hosts.

    Relayed, the command is not a child of ssh's own process, which can be killed without its noticing.
    """
    interface = outward_interface()
    if interface is None:
        pytest.skip("this machine has no network interface but the loopback")
    ssh, log, relay = folder / "bin" / "ssh", folder / "ssh.log", folder / "relay.py"
    ssh.parent.mkdir()
    relay.write_text(RELAY)
    ssh.write_text(FAKE_SSH.replace("RUN", f"exec {sys.executable} '{relay}'" if relayed else "exec sh -c"))
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", str(ssh.parent), prepend=":")
    monkeypatch.setenv("SSH_LOG", str(log))
    return ("-H", f"localhost:1,{ELSEWHERE}:2", "--network-interface", interface, "--ssh-port", "22"), log
