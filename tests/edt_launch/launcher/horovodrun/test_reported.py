"""Events that workers write down."""

import json
from pathlib import Path

from edt_launch.launcher.horovodrun.reported import MAX_LINE, MOST_BYTES, Reported


def line(event: str, **content: object) -> bytes:
    return json.dumps({"event": event, **content}).encode() + b"\n"


def test_events_come_once_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "events"
    reported = Reported(path)
    assert list(reported.new()) == []
    with path.open("ab", buffering=0) as file:
        file.write(line("world", size=2) + line("progress", step=1)[:9])
        assert list(reported.new()) == [{"event": "world", "size": 2}]
        file.write(line("progress", step=1)[9:])
        assert list(reported.new()) == [{"event": "progress", "step": 1}]
        assert list(reported.new()) == []


def test_what_only_the_launcher_may_say_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "events"
    path.write_bytes(line("ended") + line("released", worker=1) + b"[1]\nno JSON\n" + line("resumed"))
    assert list(Reported(path).new()) == [{"event": "resumed"}]


def test_long_lines_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "events"
    path.write_bytes(line("progress", text="x" * MAX_LINE) + line("world") + b"x" * (3 * MOST_BYTES))
    reported = Reported(path)
    found = [event for _ in range(5) for event in reported.new()]
    assert found == [{"event": "world"}]
    with path.open("ab") as file:
        file.write(line("progress", step=1) + line("progress", step=2))  # the first ends the long line
    assert list(reported.new()) == [{"event": "progress", "step": 2}]


def test_a_look_reads_a_bounded_part(tmp_path: Path) -> None:
    path = tmp_path / "events"
    one = line("progress", step=1)
    path.write_bytes(one * (2 * MOST_BYTES // len(one)))
    reported = Reported(path)
    assert len(list(reported.new())) == MOST_BYTES // len(one)
    assert len(list(reported.new())) > 0
