"""Hosts from a script written for Horovod."""

import uuid
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from edt_launch.agent.system import processes
from edt_launch.cluster import discovery_script
from edt_launch.cluster.allocation import HostSlots
from edt_launch.cluster.discovery_script import Script, run
from edt_launch.core.errors import DiscoveryError

PATH = Path("/a script")

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a script."""

    def write(body: str) -> Path:
        path = tmp_path / "it's a script.sh"
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return path

    return write


def test_hosts_with_slots_and_without() -> None:
    assert Script(PATH, 3).parse("a:2\n\n b \nc:0\n") == (
        HostSlots("a", 2),
        HostSlots("b", 3),
        HostSlots("c", 0),
    )
    assert Script(PATH).parse("a:2") == (HostSlots("a", 2),)
    assert Script(PATH).parse("a:2\na:2") == (HostSlots("a", 2),)
    pods = "job-worker-0.job.default.svc\njob-worker-1.job.default.svc.cluster.local\n"
    assert Script(PATH, 8).parse(pods) == tuple(HostSlots(pod, 8) for pod in pods.split())


@pytest.mark.parametrize(
    "text", ["", "\n", "a", "a:two", "a:-1", "a:", "a:1:2", "a b:1", "-oProxyCommand=x:1", "a:1\na:2", "a:0"]
)
def test_nonsense(text: str) -> None:
    with pytest.raises(DiscoveryError, match=r"the host-discovery script /a script.*: expected"):
        Script(PATH).parse(text)


@pytest.mark.parametrize(
    "body, limit, words",
    [
        ("echo node1:2; echo gone >&2; exit 3", 60.0, "'gone': expected exit code 0, not 3"),
        ("sleep 60", 0.3, "an answer within 0.3 s"),
        ("sleep 60 & echo node1:2", 0.3, "an answer within 0.3 s"),  # somebody still may print more
        ("setsid sleep 5 & echo node1:2", 0.3, "an answer within 0.3 s"),
        ("yes", 60.0, "100 bytes at most"),
    ],
)
def test_a_script_that_fails_hangs_or_floods(
    write: Write, monkeypatch: pytest.MonkeyPatch, body: str, limit: float, words: str
) -> None:
    monkeypatch.setattr(discovery_script, "MAX_OUTPUT", 100)
    mark = {"EDT_TEST": uuid.uuid4().hex}
    monkeypatch.setenv("EDT_TEST", mark["EDT_TEST"])
    with pytest.raises(DiscoveryError, match=words):
        run(write(body), limit)
    children = {one for one in processes.having(mark) if "setsid" not in body} - {psutil.Process()}
    _, alive = psutil.wait_procs(children, timeout=60)  # they are killed, but may not have come to run
    assert alive == []
