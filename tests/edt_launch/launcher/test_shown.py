"""The look at the host-discovery script and at the devices in the allocation file."""

from pathlib import Path

import pytest

from edt_launch.launcher.shown import Complaints, Shown, discover
from edt_launch.membership.protocol import Slot


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "it's a script.sh"


def write(script: Path, body: str) -> str:
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o755)
    return str(script)


def test_slots_of_every_host(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EDT_ALLOCATION", raising=False)
    path = write(script, "echo node1:2; echo node2:1")
    assert discover(path) == Shown((Slot("node1", 0), Slot("node1", 1), Slot("node2", 0)))


def test_devices_come_from_the_allocation(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allocation = tmp_path / "allocation"
    allocation.write_text("# edt allocation v1 generation=7\nnode1:2 devices=5,3\nnode2:1\n")
    monkeypatch.setenv("EDT_ALLOCATION", str(allocation))
    path = write(script, "echo node1:2; echo node2:1")
    assert discover(path) == Shown((Slot("node1", 0, "5"), Slot("node1", 1, "3"), Slot("node2", 0)), 7)


def test_a_file_that_changed_meanwhile_shows_nothing_yet(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allocation = tmp_path / "allocation"
    allocation.write_text("# edt allocation v1 generation=2\nnode1:3 devices=5,3,4\n")
    monkeypatch.setenv("EDT_ALLOCATION", str(allocation))
    assert discover(write(script, "echo node1:2")) == Shown()


@pytest.mark.parametrize("body", ["exit 3", "echo node1", "echo node1:two", "echo node1:-1", ":"])
def test_a_script_that_fails_or_prints_nonsense_shows_nothing(script: Path, body: str) -> None:
    assert discover(write(script, body)) == Shown()


def test_a_script_that_is_not_there_shows_nothing(script: Path) -> None:
    assert discover(str(script)) == Shown()


def test_the_same_trouble_is_logged_once(script: Path, caplog: pytest.LogCaptureFixture) -> None:
    complain = Complaints()
    for body in ("exit 3", "exit 3", "exit 4", "exit 3"):
        discover(write(script, body), complain)
    assert [record.message.partition("code ")[2][:1] for record in caplog.records] == ["3", "4", "3"]


def test_trouble_that_comes_back_is_logged_again(caplog: pytest.LogCaptureFixture) -> None:
    complain = Complaints()
    complain("no script")
    complain.settle()
    complain("no script")
    assert len(caplog.records) == 2
