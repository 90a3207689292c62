"""Events into a file, and out of one that grows."""

import json
from pathlib import Path

import pytest

from edt_launch.core.event_log import LOOK, EventLog, EventReader
from edt_launch.core.events import CheckpointFailed


def line(reason: str) -> bytes:
    return json.dumps({"event": "checkpoint_failed", "time": 1.0, "reason": reason}).encode() + b"\n"


def reasons(reader: EventReader) -> list[str]:
    return [event.reason for event in reader.read() if isinstance(event, CheckpointFailed)]


@pytest.mark.parametrize("length", [LOOK - 1, LOOK, LOOK + 1, 3 * LOOK])
@pytest.mark.parametrize("before", [b"", line("a")])
def test_half_a_line_is_cut_off_however_long_it_is(tmp_path: Path, before: bytes, length: int) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(before + b"x" * length)
    EventLog(path, print).close()
    assert path.read_bytes() == before


def test_events_are_read_once_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "events"
    reader = EventReader(path)
    assert list(reader.read()) == []
    with path.open("ab", buffering=0) as file:
        file.write(line("a") + line("b")[:9])
        assert reasons(reader) == ["a"]
        file.write(line("b")[9:])
        assert reasons(reader) == ["b"]
        assert reasons(reader) == []


def test_long_lines_and_what_is_no_event_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "events"
    path.write_bytes(line("x" * 2**16) + b"[1]\nno JSON\n" + line("a") + b"x" * (3 * LOOK))
    reader = EventReader(path)
    assert [reason for _ in range(5) for reason in reasons(reader)] == ["a"]
    with path.open("ab") as file:
        file.write(line("b") + line("c"))  # the first ends the long line
    assert reasons(reader) == ["c"]
