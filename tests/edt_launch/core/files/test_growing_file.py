"""A growing file is read once and whole, whatever becomes of it."""

import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edt_launch.core.files import growing_file
from edt_launch.core.files.growing_file import LOOK_BYTES, GrowingFile, start_of_last_lines
from edt_launch.core.files.lines import MAX_LINE_BYTES


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "grows"


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def replace(path: Path, data: bytes) -> None:
    beside = path.with_name("beside")
    beside.write_bytes(data)
    beside.replace(path)


def texts(file: GrowingFile, end: int | None = None) -> list[bytes]:
    return [line.text for line in file.lines(end=end)]


def test_lines_come_later_bit_by_bit_and_once(path: Path) -> None:
    file = GrowingFile(path)
    assert file.lines() == []
    found: list[bytes] = []
    content = b"a\n\nbcd\n"
    for at in range(len(content)):
        append(path, content[at : at + 1])
        found += texts(file)
    assert (found, file.offset, texts(file)) == ([b"a", b"", b"bcd"], len(content), [])
    append(path, b"e\nf")
    assert file.lines() == [(b"e", len(content) + 2)]


@pytest.mark.parametrize(
    "change",
    [
        replace,
        lambda path, data: path.write_bytes(data),
        lambda path, data: (path.unlink(), path.write_bytes(data)),
    ],
)
@pytest.mark.parametrize("length", [3, 40])
def test_another_file_is_read_from_its_beginning(
    path: Path, change: Callable[[Path, bytes], object], length: int
) -> None:
    append(path, b"first one\nhalf")
    file = GrowingFile(path)
    assert texts(file) == [b"first one"]
    change(path, b"x" * length + b"\nnew\n")
    assert (texts(file), file.is_another) == ([b"x" * length, b"new"], True)
    append(path, b"more\n")
    assert (texts(file), file.is_another) == ([b"more"], False)


def test_half_a_line_may_be_cut_off_and_another_one_written(path: Path) -> None:
    """As a launcher does that goes on with the events of one that was killed."""
    append(path, b"one\nhal")
    file = GrowingFile(path)
    assert texts(file) == [b"one"]
    os.truncate(path, 4)
    append(path, b"another line\n")
    assert (texts(file), file.is_another) == ([b"another line"], False)


def test_a_file_that_was_read_before_is_read_on_unless_it_is_another(path: Path) -> None:
    append(path, b"one\ntwo\n")
    assert texts(GrowingFile(path, 4, is_known=True)) == [b"two"]
    assert texts(GrowingFile(path, 100)) == []
    for offset in (3, 100):
        file = GrowingFile(path, offset, is_known=True)
        assert (texts(file), file.is_another) == ([b"one", b"two"], True)


def test_what_was_written_to_the_old_file_before_it_was_replaced_is_read_first(path: Path) -> None:
    append(path, b"old ")
    with GrowingFile(path) as file:
        assert file.read() == b"old "
        append(path, b"end")
        replace(path, b"new")
        assert file.has_changed()
        assert (file.read(), file.read(), file.read()) == (b"end", b"new", b"")
        assert not file.has_changed()
        os.truncate(path, 0)
        append(path, b"n")
        assert (file.read(), file.is_another) == (b"n", True)


def test_long_lines_are_skipped_and_counted_however_they_come(path: Path) -> None:
    append(
        path,
        b"a\n"
        + b"x" * MAX_LINE_BYTES
        + b"\n"
        + b"y" * (MAX_LINE_BYTES + 1)
        + b"\nb\n"
        + b"z" * 3 * LOOK_BYTES,
    )
    file = GrowingFile(path)
    found = [line.text for lines in file.looks() for line in lines]
    assert [text[:1] for text in found] == [b"a", b"x", b"b"]
    append(path, b"\nc\n")
    assert (texts(file), file.skipped_lines) == ([b"c"], 2)


@given(st.lists(st.sampled_from([b"", b"a", b"bb"])), st.booleans(), st.integers(0, 12), st.integers(1, 7))
def test_the_last_lines_are_found_whatever_the_blocks(
    lines: list[bytes], has_end: bool, count: int, size: int
) -> None:
    text = b"\n".join(lines) + (b"\n" if has_end else b"")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(growing_file, "BLOCK_BYTES", size)
        start = start_of_last_lines(io.BytesIO(text), count)
    kept = text.splitlines(keepends=True)
    assert text[start:] == b"".join(kept[len(kept) - min(count, len(kept)) :])
