"""Events from a pipe and into a file."""

import json

import pytest

from edt_launch.core.events import EventLog, EventStream, new


def test_events_come_in_any_pieces():
    written = [{"event": "world", "size": 2}, {"event": "progress", "values": {"name": "zwölf"}}]
    data = b"".join(json.dumps(event, ensure_ascii=False).encode() + b"\n" for event in written)
    for size in (1, 5, len(data)):
        stream = EventStream()
        assert [e for at in range(0, len(data), size) for e in stream.feed(data[at : at + size])] == written


def test_what_is_no_event_is_given_as_text():
    assert list(EventStream().feed(b'nonsense\n[1]\n{"no": 1}\n\xff\n{"event": 3}\n')) == [
        *("nonsense", "[1]", '{"no": 1}', "\N{REPLACEMENT CHARACTER}", '{"event": 3}'),
    ]


def test_a_line_that_is_nested_too_deeply_is_no_event():
    line = "[" * 100_000
    assert list(EventStream().feed(f"{line}\n".encode())) == [line]


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
