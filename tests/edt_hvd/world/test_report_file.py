"""Events in a file, where no launcher listens."""

import json
from pathlib import Path

import pytest

from edt_hvd.world.report_file import ReportFile
from edt_messages.messages import Progress, WorldFormed


def test_events_are_lines(tmp_path: Path) -> None:
    path = tmp_path / "events of\nall"
    ReportFile(str(path)).send(Progress(7, None, 1))
    ReportFile(str(path)).send(WorldFormed(1, 2))
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(row["event"], row.get("step"), row.get("size")) for row in rows] == [
        ("progress", 7, 1),
        ("world", None, 2),
    ]
    assert all(row["time"] > 0 for row in rows)


def test_a_file_that_cannot_be_written_is_warned_of_once(tmp_path: Path) -> None:
    events = ReportFile(str(tmp_path / "nowhere" / "events"))
    with pytest.warns(UserWarning, match="cannot be reported: .*nowhere/events: No such file"):
        events.send(Progress(1, None, 1))
    events.send(Progress(2, None, 1))  # here a warning would be an error
