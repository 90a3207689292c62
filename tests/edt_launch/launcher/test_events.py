"""Events into a file."""

import json
import tracemalloc
from pathlib import Path

import pytest

from edt_launch.launcher.events import EventLog, new


def test_the_file_grows_event_by_event(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text('{"event": "of the last run"}\n')
    log = EventLog(path, print)
    log.write(new("launched", pid=7))
    lines = path.read_text().splitlines()
    log.close()
    assert len(lines) == 2
    event = json.loads(lines[1])
    assert event.pop("time") > 1e9
    assert event == {"event": "launched", "pid": 7}


@pytest.mark.parametrize(
    "before, kept",
    [("", []), ('{"event": "a"}\n', ["a"]), ('{"event": "a"}\n{"ev', ["a"]), ('{"ev', [])],
)
def test_half_a_line_of_a_killed_launcher_does_no_harm(tmp_path, before, kept):
    path = tmp_path / "events.jsonl"
    path.write_text(before)
    log = EventLog(path, print)
    log.write({"event": "b"})
    log.close()
    assert [json.loads(line)["event"] for line in path.read_text().splitlines()] == [*kept, "b"]


def test_of_what_the_file_has_little_is_in_memory_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    whole = b'{"event": "a"}\n' * 2**17
    path.write_bytes(whole + b"x" * 2**21)
    tracemalloc.start()
    try:
        EventLog(path, print).close()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert path.read_bytes() == whole
    assert peak < 2**20
