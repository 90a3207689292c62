"""What the discovery script shows is told when it changes, and only then."""

from itertools import islice
from pathlib import Path

import pytest

from edt_launch.launcher import following
from edt_launch.launcher.following import changes
from edt_launch.launcher.shown import Complaints
from edt_launch.membership.protocol import Slot

ONE, TWO = (Slot("h", 0),), (Slot("h", 0), Slot("h", 1))

# Shows the first line of a file, and leaves the others for the next time, but for the last.
SCRIPT = """#!/bin/sh
cd "$(dirname "$0")"
read -r line < lines
[ $(wc -l < lines) -gt 1 ] && sed -i 1d lines
$line
"""


def script(folder: Path, *lines: str) -> str:
    path = folder / "discover"
    path.write_text(SCRIPT)
    path.chmod(0o755)
    (folder / "lines").write_text("".join(f"{line}\n" for line in lines))
    return str(path)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EDT_ALLOCATION", raising=False)
    monkeypatch.setattr(following, "WATCH_INTERVAL", 0.0)
    monkeypatch.setattr(following, "DISCOVERY_INTERVAL", 0.0)


def test_each_change_is_told_once(tmp_path: Path) -> None:
    path = script(tmp_path, "echo h:1", "echo h:1", "echo h:2", "echo h:2", "echo h:1")
    assert [shown.slots for shown in islice(changes(path, Complaints()), 3)] == [ONE, TWO, ONE]


def test_a_look_that_fails_or_shows_nothing_changes_nothing(tmp_path: Path) -> None:
    path = script(tmp_path, "false", "echo h:1", "false", "true", "echo h:1", "echo h:2")
    assert [shown.slots for shown in islice(changes(path, Complaints()), 2)] == [ONE, TWO]


def test_a_new_generation_is_told_though_its_slots_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allocation = tmp_path / "allocation"
    monkeypatch.setenv("EDT_ALLOCATION", str(allocation))
    path = script(tmp_path, "echo h:1")
    told = changes(path, Complaints())
    for generation in (1, 2):
        allocation.write_text(f"# edt allocation v1 generation={generation}\nh:1\n")
        shown = next(told)
        assert (shown.slots, shown.generation) == (ONE, generation)
