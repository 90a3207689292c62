"""The checkpoints of a folder: names, order, what is removed."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from edt_hvd.state.checkpoint.directory import (
    ABANDONED,
    newest_first,
    outdated,
    path_of,
    put_in_place,
    quarantine,
    temporary,
    tidy,
)


def test_the_newest_comes_first_and_nothing_else_counts(tmp_path: Path) -> None:
    for name in ("step-00000009", "step-00000100", "step-100000000", ".step-00000200.h.1.0", "step-1", "x"):
        (tmp_path / name).mkdir()
    (tmp_path / "step-00000300").touch()
    found = [path.name for path in newest_first(tmp_path)]
    assert found == ["step-100000000", "step-00000100", "step-00000009"]


NOW = 1e9
"""Seconds since the epoch."""

NAMES = [path_of(Path(), commits).name for commits in (10, 20, 30, 40)]


@pytest.mark.parametrize(
    "written, keep, removed",
    [
        (40, 3, {10}),
        (40, 1, {10, 20, 30}),
        (40, 9, set()),
        (10, 2, {20}),  # a late one stays, but is not in the way of newer ones
    ],
)
def test_what_is_removed(written: int, keep: int, removed: set[int]) -> None:
    def name(commits: int) -> str:
        return path_of(Path(), commits).name

    found = outdated([*NAMES, "else"], name(written), keep)
    assert found == {name(each) for each in removed}


def test_what_is_set_aside_is_neither_found_nor_removed(tmp_path: Path) -> None:
    for name in ("damaged-step-00000003", "damaged-step-00000003-2"):
        path = path_of(tmp_path, 3)
        path.mkdir()
        (path / "state.pt").touch()
        assert quarantine(path) == tmp_path / name
    path_of(tmp_path, 1).mkdir()
    tidy(path_of(tmp_path, 1), keep=1, now=NOW)
    assert newest_first(tmp_path) == [path_of(tmp_path, 1)]
    assert len(list(tmp_path.iterdir())) == 3


def ended() -> int:
    """The number of a process that is gone."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_what_dead_writers_have_left_is_removed_and_a_living_ones_is_not(tmp_path: Path) -> None:
    here = socket.gethostname()
    living = f".step-00000007.{here}.{os.getppid()}.3"
    dead = f".step-00000006.{here}.{ended()}.0"
    for name in (living, dead, "of the user", path_of(tmp_path, 7).name):
        (tmp_path / name).mkdir()
    tidy(path_of(tmp_path, 7), keep=1, now=NOW)
    assert {path.name for path in tmp_path.iterdir()} == {living, "of the user", "step-00000007"}


@pytest.mark.parametrize("silent, stays", [(0.0, True), (ABANDONED - 1, True), (ABANDONED + 1, False)])
def test_a_writer_on_another_host_is_gone_when_it_has_long_written_nothing(
    tmp_path: Path, silent: float, stays: bool
) -> None:
    beside = tmp_path / ".step-00000006.another.host.1.12"
    beside.mkdir()
    (beside / "state.pt").touch()
    os.utime(beside / "state.pt", (NOW - silent, NOW - silent))
    os.utime(beside, (0, 0))
    path_of(tmp_path, 7).mkdir()
    tidy(path_of(tmp_path, 7), keep=1, now=NOW)
    assert beside.exists() == stays


def file(path: Path) -> None:
    path.write_text("the user's")


def link(path: Path) -> None:
    elsewhere = path.parent.parent / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    (elsewhere / "file").touch()
    path.symlink_to(elsewhere)


@pytest.mark.parametrize("made", [file, link])
def test_what_is_no_folder_is_in_nobodys_way_and_stays(tmp_path: Path, made: Callable[[Path], None]) -> None:
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    for name in ("step-00000003", "step-00000001", f".step-00000002.{socket.gethostname()}.{ended()}.0"):
        made(folder / name)
    for commits in (2, 3):
        beside = temporary(path_of(folder, commits))
        beside.mkdir()
        put_in_place(beside, path_of(folder, commits))
    tidy(path_of(folder, 3), keep=1, now=NOW)
    found = {path.name for path in folder.iterdir() if path.is_symlink() or not path.is_dir()}
    assert {"damaged-step-00000003", "step-00000001"} < found
    assert newest_first(folder)[0] == path_of(folder, 3)
    assert len(found) == 3
    assert made is not link or (tmp_path / "elsewhere" / "file").exists()


def test_what_is_in_the_place_goes(tmp_path: Path) -> None:
    path = path_of(tmp_path, 3)
    for content in ("old", "new"):
        beside = temporary(path)
        beside.mkdir()
        (beside / "file").write_text(content)
        put_in_place(beside, path)
    assert (path / "file").read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]
