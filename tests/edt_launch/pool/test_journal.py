"""Events are read once, whatever happens to the file or to whoever reads it."""

import contextlib
import json
from pathlib import Path

import pytest

from edt_launch.pool import journal
from edt_launch.pool.course import Course
from edt_launch.pool.journal import Journal
from no_files import KINDS, put


@pytest.fixture
def events(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


def progress(step: int) -> str:
    return json.dumps({"event": "progress", "time": float(step), "step": step, "size": 1}) + "\n"


def append(events: Path, text: str) -> None:
    with events.open("a") as file:
        file.write(text)


def test_a_file_that_comes_later(events: Path, tmp_path: Path) -> None:
    one = Journal(events, tmp_path / "kept")
    assert not one.read_on()
    append(events, progress(1))
    assert one.read_on()
    assert one.course.step == 1
    assert not one.read_on()


def test_half_lines_wait_for_their_other_half(events: Path, tmp_path: Path) -> None:
    one = Journal(events, tmp_path / "kept")
    text = progress(1) + progress(2)
    for start in range(0, len(text), 7):
        append(events, text[start : start + 7])
        one.read_on()
    assert one.course.step == 2


def test_half_a_line_that_is_cut_off_is_forgotten(events: Path, tmp_path: Path) -> None:
    one = Journal(events, tmp_path / "kept")
    append(events, progress(1) + progress(2)[:9])
    one.read_on()
    events.write_text(progress(1))
    one.read_on()
    append(events, progress(3))
    one.read_on()
    assert one.course.step == 3


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
    assert (one.course.step, other.course.step) == (8, 9)
    assert other.course.paces[0].steps == 8


@pytest.mark.parametrize("kept", ["", "{}", '{"offset": 3, "course": {"life": 1}}', "\x00"])
def test_what_was_kept_and_makes_no_sense_is_read_again(events: Path, tmp_path: Path, kept: str) -> None:
    (tmp_path / "kept").write_text(kept)
    append(events, progress(1))
    one = Journal(events, tmp_path / "kept")
    one.read_on()
    assert one.course.step == 1


def test_another_file_is_read_from_its_beginning(events: Path, tmp_path: Path) -> None:
    one = Journal(events, tmp_path / "kept")
    append(events, progress(1) + progress(2))
    one.read_on()
    beside = tmp_path / "beside"
    beside.write_text(progress(7))
    beside.replace(events)
    one.read_on()
    assert one.course == Course().observe(json.loads(progress(7)))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file_is_not_waited_for(events: Path, tmp_path: Path, kind: str) -> None:
    put(kind, tmp_path / "kept")
    append(events, progress(1))
    one = Journal(events, tmp_path / "kept")
    one.read_on()
    assert one.course.step == 1
    put(kind, events)
    with contextlib.suppress(OSError):
        one.read_on()
    assert one.course in (Course(), Course().observe(json.loads(progress(1))))
