"""The checkpoints of a folder: names, order, what is removed."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from edt_hvd.checkpoint_folder import (
    newest_first,
    outdated,
    path_of,
    put_in_place,
    set_aside,
    temporary,
    tidy,
)


def test_the_newest_comes_first_and_nothing_else_counts(tmp_path: Path) -> None:
    for name in ("step-00000009", "step-00000100", "step-100000000", ".step-00000200.h.1.0", "step-1", "x"):
        (tmp_path / name).mkdir()
    found = [path.name for path in newest_first(tmp_path)]
    assert found == ["step-100000000", "step-00000100", "step-00000009"]


def test_a_folder_that_is_not_there_has_none(tmp_path: Path) -> None:
    assert newest_first(tmp_path / "missing") == []


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
        assert set_aside(path) == tmp_path / name
    path_of(tmp_path, 1).mkdir()
    tidy(path_of(tmp_path, 1), keep=1)
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
    dead = [f".step-00000006.{here}.{ended()}.0", ".step-00000006.another.host.1.12"]
    for name in (living, *dead, "of the user", path_of(tmp_path, 7).name):
        (tmp_path / name).mkdir()
    tidy(path_of(tmp_path, 7), keep=1)
    assert {path.name for path in tmp_path.iterdir()} == {living, "of the user", "step-00000007"}


def test_ones_own_half_written_ones_are_removed(tmp_path: Path) -> None:
    path = path_of(tmp_path, 3)
    beside = temporary(path)
    beside.mkdir()
    path.mkdir()
    tidy(path, keep=3)
    assert not beside.exists()


def test_what_is_in_the_place_goes(tmp_path: Path) -> None:
    path = path_of(tmp_path, 3)
    for content in ("old", "new"):
        beside = temporary(path)
        beside.mkdir()
        (beside / "file").write_text(content)
        put_in_place(beside, path)
    assert (path / "file").read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]
