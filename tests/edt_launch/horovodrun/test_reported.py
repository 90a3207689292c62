"""Events that workers write down."""

import json
from pathlib import Path

from edt_launch.horovodrun.reported import MOST_BYTES, Reported
from edt_launch.lines import LONGEST


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
    path.write_bytes(
        line("ended") + line("released", worker=1) + b'[1]\n{"event": []}\nno JSON\n' + line("resumed")
    )
    assert list(Reported(path).new()) == [{"event": "resumed"}]


def test_long_lines_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "events"
    path.write_bytes(line("progress", text="x" * LONGEST) + line("world") + b"x" * (3 * MOST_BYTES))
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


def test_an_over_long_line_that_grows_slowly_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "events"
    reported = Reported(path)
    with path.open("ab", buffering=0) as file:
        file.write(line("world") + b'{"event": "world", "text": "')
        assert list(reported.new()) == [{"event": "world"}]
        for _ in range(5):
            file.write(b"x" * (LONGEST // 2))
            assert list(reported.new()) == []
        file.write(b'"}\n' + line("resumed") + line("progress", text="x" * LONGEST)[:-1])
        assert list(reported.new()) == [{"event": "resumed"}]
        file.write(b"\n" + line("progress", step=1))
        assert list(reported.new()) == [{"event": "progress", "step": 1}]
