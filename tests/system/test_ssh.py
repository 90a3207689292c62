"""Workers on other hosts: Horovod's own ssh command line; a stand-in for ssh stays on this machine."""

import socket
from pathlib import Path

import psutil
import pytest

from harness import TRACED, ElasticJob

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


@pytest.mark.timeout(120)
def test_workers_are_started_over_ssh(
    job: ElasticJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interface = outward_interface()
    if interface is None:
        pytest.skip("this machine has no network interface but the loopback")
    ssh, log = tmp_path / "bin" / "ssh", tmp_path / "ssh.log"
    ssh.parent.mkdir()
    ssh.write_text(FAKE_SSH)
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", str(ssh.parent), prepend=":")
    monkeypatch.setenv("SSH_LOG", str(log))
    monkeypatch.setenv("GREETING", 'it\'s "quoted" & has $signs; `and more`')
    hosts = ("-H", f"localhost:1,{ELSEWHERE}:2", "--network-interface", interface, "--ssh-port", "22")
    job.start(TRACED, job.results, options=hosts)
    assert job.end() == 0, job.stderr
    assert log.read_text().split() == [ELSEWHERE] * 2
    assert {event["host"] for event in job.events("started")} == {"localhost", ELSEWHERE}
    assert {row["size"] for row in job.trace()} == {3}
    assert job.survivors() == []
