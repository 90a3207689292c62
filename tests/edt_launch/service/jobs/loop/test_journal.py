"""Events are read once, whatever happens to the file or to whoever reads it."""

import json
import logging
import os
from dataclasses import asdict
from pathlib import Path

import pytest

from edt_launch.core.files.lines import MAX_LINE_BYTES
from edt_launch.core.history.events import Progress
from edt_launch.service.jobs.loop import journal
from edt_launch.service.jobs.loop.journal import Journal
from edt_launch.service.jobs.loop.progress import JobProgress
from no_files import KINDS, put


@pytest.fixture
def events(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


def progress(step: int) -> str:
    return json.dumps({"event": "progress", "time": float(step), "step": step, "size": 1}) + "\n"


def reported(step: int) -> JobProgress:
    return JobProgress().after([Progress(step, None, 1, time=float(step))])[0]


def append(events: Path, text: str) -> None:
    with events.open("a") as file:
        file.write(text)


def test_another_process_goes_on_where_this_one_was(
    events: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "KEEP_AFTER", 1)
    append(events, "".join(progress(step) for step in range(1, 9)) + progress(9)[:5])
    one = Journal(events, tmp_path / "kept")
    one.read_on()
    content = events.read_text()
    events.write_text("x" * content.rindex("\n") + content[content.rindex("\n") :])  # read no more
    other = Journal(events, tmp_path / "kept")
    append(events, progress(9)[5:])
    other.read_on()
    assert (one.progress.step, other.progress.step) == (8, 9)
    assert other.progress.paces[0].steps == 8


MADE_UP = json.dumps({"offset": -1, "progress": asdict(reported(7))})


@pytest.mark.parametrize("kept", ["", "{}", '{"offset": 3, "progress": {"run": 1}}', "\x00", MADE_UP])
def test_what_was_kept_and_makes_no_sense_is_read_again(events: Path, tmp_path: Path, kept: str) -> None:
    (tmp_path / "kept").write_text(kept)
    append(events, progress(1))
    one = Journal(events, tmp_path / "kept")
    one.read_on()
    assert one.progress.step == 1


def test_another_file_is_read_from_its_beginning(events: Path, tmp_path: Path) -> None:
    one = Journal(events, tmp_path / "kept")
    append(events, progress(1) + progress(2))
    one.read_on()
    beside = tmp_path / "beside"
    beside.write_text(progress(7))
    beside.replace(events)
    one.read_on()
    assert one.progress == reported(7)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file_is_not_waited_for(events: Path, tmp_path: Path, kind: str) -> None:
    put(kind, tmp_path / "kept")
    append(events, progress(1))
    one = Journal(events, tmp_path / "kept")
    one.read_on()
    assert one.progress.step == 1
    put(kind, events)
    assert not one.read_on()
    assert one.progress == reported(1)


def read_to_the_end(one: Journal) -> int:
    """How many looks it takes."""
    looks = 1
    one.read_on()
    while one.is_behind:
        one.read_on()
        looks += 1
    return looks


def test_a_line_without_an_end_is_skipped_and_reported_once(
    events: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    append(events, progress(1) + "x" * 2**25 + "\n" + progress(2) + "y" * (MAX_LINE_BYTES + 1))
    one = Journal(events, tmp_path / "kept")
    read_to_the_end(one)
    assert one.progress.step == 2
    append(events, "\n" + progress(3))
    one.read_on()
    assert one.progress.step == 3
    (message,) = caplog.messages
    assert all(part in message for part in (str(events), f"{MAX_LINE_BYTES:,}"))


def test_what_grows_faster_than_it_is_read_is_read_from_near_its_end(
    events: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    append(events, progress(1))
    os.truncate(events, 2**40)
    append(events, "\n" + progress(2))
    one = Journal(events, tmp_path / "kept")
    with caplog.at_level(logging.WARNING):
        assert read_to_the_end(one) <= journal.BEHIND // journal.LOOK + 1
    assert one.progress.step == 2
    assert f"{2**40 - journal.BEHIND:,}"[:6] in caplog.text
    assert not one.read_on()


def test_the_end_of_a_launcher_is_read_to_where_the_file_ended_with_it(events: Path, tmp_path: Path) -> None:
    append(events, progress(1) * (3 * journal.LOOK // len(progress(1))))
    one = Journal(events, tmp_path / "kept")
    for _ in range(4):
        one.read_on(is_final=True)
        append(events, progress(2) * (2 * journal.LOOK // len(progress(2))))  # somebody else writes on
    assert not one.is_behind
