"""Events into a file."""

import errno
import json
import os
from pathlib import Path

import pytest

from edt_launch.core.files.growing_file import BLOCK_BYTES
from edt_launch.core.history.event_log import EventLog
from edt_launch.core.history.events import CheckpointFailed, Progress


def line(reason: str) -> bytes:
    return json.dumps({"event": "checkpoint_failed", "time": 1.0, "reason": reason}).encode() + b"\n"


@pytest.mark.parametrize("length", [BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES])
@pytest.mark.parametrize("before", [b"", line("a")])
def test_half_a_line_is_cut_off_however_long_it_is(tmp_path: Path, before: bytes, length: int) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(before + b"x" * length)
    EventLog(path, print).close()
    assert path.read_bytes() == before


def test_what_had_no_room_is_written_in_order_once_there_is_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a worker's start could be missing though its device is said to be free."""
    room, write = 10, os.write

    def write_some(descriptor: int, data: bytes) -> int:
        nonlocal room
        if not room:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = write(descriptor, data[:room])
        room -= written
        return written

    complaints: list[str] = []
    log = EventLog(tmp_path / "events", complaints.append)
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", write_some)
        for event in (CheckpointFailed("a"), Progress(1, 0, 1, {}), CheckpointFailed("b")):
            log.write(event)
    log.write(CheckpointFailed("c"))
    log.close()
    found = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
    assert [event["reason"] for event in found] == ["a", "b", "c"]
    assert len(complaints) == 1
