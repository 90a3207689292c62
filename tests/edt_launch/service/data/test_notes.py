from pathlib import Path

import pytest

from edt_launch.service.data import notes


@pytest.mark.parametrize(
    "text",
    [
        b'{"files": 1e999, "size": 1, "time": 1}', b'{"files": 1, "size": 1, "time": NaN}',
        b'{"files": 1, "size": 1, "time": 1e300}', b'{"files": -1, "size": 1, "time": 1}',
        b'{"files": 1, "size": 1%s, "time": 1}' % (b"0" * 5000), b"[" * 100_000, b"\xff", b"", b"[]",
    ],
    ids=["infinite", "no time", "far away", "negative", "large", "deep", "no text", "empty", "a list"],
)  # fmt: skip
def test_a_note_that_makes_no_sense_says_nothing(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "note").write_bytes(text)
    assert notes.read(tmp_path / "note", 5.0) == notes.Note(time=5.0)


def test_a_note_is_read_as_it_was_written_whatever_was_there(tmp_path: Path) -> None:
    path, note = tmp_path / "note", notes.Note(files=1, size=None, time=2.0)
    (path / "inner").mkdir(parents=True)
    assert notes.read(path, 0.0) == notes.Note(time=0.0)
    assert notes.write(path, note) == note
    assert notes.read(path, 0.0) == note
