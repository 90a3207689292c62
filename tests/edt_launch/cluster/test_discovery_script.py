"""Hosts from a script written for Horovod."""

import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from edt_launch.cluster import discovery_script
from edt_launch.cluster.allocation import Allocation, HostSlots
from edt_launch.cluster.discovery_script import Script, ScriptFollower, parse, run
from edt_launch.cluster.follower import Accepted, Limits, Rejected
from edt_launch.core.errors import DiscoveryError

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
    assert parse("a:2\n\n b \nc:0\n", 3) == (HostSlots("a", 2), HostSlots("b", 3), HostSlots("c", 0))
    assert parse("a:2") == (HostSlots("a", 2),)


@pytest.mark.parametrize(
    "text", ["", "\n", "a", "a:two", "a:-1", "a:", "a:1:2", "a b:1", "-oProxyCommand=x:1", "a:1\na:1", "a:0"]
)
def test_nonsense(text: str) -> None:
    with pytest.raises(DiscoveryError, match="expected"):
        parse(text)


def test_a_script_is_run(write: Write) -> None:
    assert run(write("echo node1:2; echo told >&2")) == "node1:2\n"


@pytest.mark.parametrize(
    "body, words",
    [
        ("echo node1:2; echo gone >&2; exit 3", "'gone': expected exit code 0, not 3"),
        ("sleep 60", "an answer within 0.3 s"),
        ("sleep 60 & echo node1:2", "an answer within 0.3 s"),  # somebody still may print more
        ("yes", "100 bytes at most"),
    ],
)
def test_a_script_that_fails_hangs_or_floods(
    write: Write, monkeypatch: pytest.MonkeyPatch, body: str, words: str
) -> None:
    monkeypatch.setattr(discovery_script, "MAX_OUTPUT", 100)
    before = {process.pid for process in psutil.process_iter()}
    with pytest.raises(DiscoveryError, match=words):
        run(write(body), 0.3)
    left = [p for p in psutil.process_iter() if p.pid not in before and p.name() in ("sleep", "yes")]
    assert [p for p in left if p.status() != psutil.STATUS_ZOMBIE and p.ppid() == 1] == []


def test_a_script_that_cannot_be_run(tmp_path: Path) -> None:
    with pytest.raises(DiscoveryError, match="No such file or directory"):
        run(tmp_path / "missing")


class Shows:
    """A script that shows one text after the other, whenever it is looked at."""

    def __init__(self, *texts: str, **limits: int) -> None:
        self.texts = list(texts)
        self.follower = ScriptFollower(
            Script(Path("/script"), 1),
            Limits(limits.get("min_np", 1), limits.get("max_np", 4)),
            lambda host: f"unknown host {host!r}" if host == "nowhere" else None,
            self.run,
            interval=0.0,
        )

    def run(self, path: Path) -> str:
        while not self.texts or self.texts[0] == "":
            time.sleep(0.001)
        return self.texts.pop(0)

    def next(self) -> Accepted | Rejected | None:
        """What comes of the next text."""
        while self.follower._news is None:
            time.sleep(0.001)
        return self.follower.poll(0.0)


def of(accepted: Accepted | Rejected | None) -> Allocation:
    assert isinstance(accepted, Accepted)
    return accepted.allocation


def test_each_change_is_followed_once() -> None:
    shows = Shows("a:1")
    assert of(shows.next()) == Allocation(1, (HostSlots("a", 1),))
    shows.texts.append("a:1\n")
    assert shows.next() is None
    shows.texts.append("a:1\nb")
    assert of(shows.next()) == Allocation(2, (HostSlots("a", 1), HostSlots("b", 1)))
    shows.texts.append("b\na:1")  # the order means nothing
    assert shows.next() is None
    shows.follower.close()


def test_what_is_wrong_changes_nothing_and_is_reported_once() -> None:
    shows = Shows("a:2", min_np=2, max_np=3)
    first = of(shows.next())
    for text, words in [
        ("nonsense !", "'nonsense !'"),
        ("a:1", "fewer than --min-np 2"),
        ("nowhere:2", "unknown"),
    ]:
        for times in range(2):
            shows.texts.append(text)
            verdict = shows.next()
            if times:
                assert verdict is None
            else:
                assert isinstance(verdict, Rejected)
                assert words in verdict.reason
        assert shows.follower.allocation == first
        assert words in shows.follower.rejection
    shows.texts.append("a:9")  # no more than the job may have
    assert of(shows.next()) == Allocation(2, (HostSlots("a", 3),))
    shows.texts.append("nonsense !")
    assert isinstance(shows.next(), Rejected)
    shows.follower.close()
