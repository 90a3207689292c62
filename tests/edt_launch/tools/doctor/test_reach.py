"""Which hosts reach each other, and what is said of those that do not."""

from pathlib import Path

import pytest

from edt_launch.cluster.allocation import HostSlots
from edt_launch.core.run_options import PortOptions, RunOptions
from edt_launch.tools.doctor import reach


def test_agents_of_a_host_that_answers_and_of_one_that_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text('#!/bin/sh\necho "ssh: no route" >&2; exit 255\n')
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    hosts = (HostSlots("127.0.0.2", 1), HostSlots("127.0.0.3", 1, None, "ssh"), HostSlots("h.invalid", 1))
    found = reach.examine(hosts, RunOptions(groups=(PortOptions("20000:29999"),)))
    assert found.reached == {"127.0.0.2": ()}
    assert found.problems["h.invalid"].startswith("unknown host 'h.invalid': no IPv4 address is known for it")
    assert found.problems["127.0.0.3"].startswith("ssh: no route; edt-launch: ssh to 127.0.0.3 ended with")
    two = (HostSlots("127.0.0.2", 1), HostSlots("127.0.0.3", 1))
    assert reach.examine(two, RunOptions()).is_ok
