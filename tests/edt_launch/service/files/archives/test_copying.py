import os
from pathlib import Path

import pytest

from deep import deepen
from edt_launch.core.files import plain_files
from edt_launch.service.errors import InvalidError, TooLargeError
from edt_launch.service.files.archives.copying import copy_folder
from edt_launch.service.files.archives.deleting import delete_folder
from edt_launch.service.files.archives.entry import ArchiveLimits

LIMITS = ArchiveLimits(size=1000, count=20)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "the code"
    (folder / "lib").mkdir(parents=True)
    (folder / "train.py").write_text("print()")
    (folder / "lib/run.sh").write_text("true")
    (folder / "lib/run.sh").chmod(0o755)
    (folder / "data").symlink_to("/somewhere/else")
    os.mkfifo(folder / "pipe")
    return folder


def test_files_and_links_are_copied_and_pipes_are_not(source: Path, tmp_path: Path) -> None:
    into = tmp_path / "copy"
    copy_folder(source, into, LIMITS)
    names = {str(path.relative_to(into)) for path in into.rglob("*")}
    assert names == {"data", "lib", "lib/run.sh", "train.py"}
    assert os.readlink(into / "data") == "/somewhere/else"
    assert os.access(into / "lib/run.sh", os.X_OK)


def test_of_a_jobs_folder_files_of_other_accounts_are_not_copied(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_files, "_is_of_owner", lambda path, owner: not path.endswith("run.sh"))
    with pytest.raises(InvalidError, match=r"run\.sh' cannot be copied"):
        copy_folder(source, tmp_path / "copy", LIMITS)
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("limits", [ArchiveLimits(size=5, count=20), ArchiveLimits(size=1000, count=3)])
def test_a_folder_that_is_too_large_leaves_nothing(
    source: Path, tmp_path: Path, limits: ArchiveLimits
) -> None:
    with pytest.raises(TooLargeError):
        copy_folder(source, tmp_path / "copy", limits)
    assert not (tmp_path / "copy").exists()


def test_a_folder_is_not_copied_into_itself(source: Path) -> None:
    with pytest.raises(InvalidError, match="own folder"):
        copy_folder(source, source / "jobs" / "copy", LIMITS)


def test_a_folder_that_is_too_deep_leaves_nothing(tmp_path: Path) -> None:
    deepen(tmp_path / "source")
    with pytest.raises(InvalidError, match="more than 100 folders within each other"):
        copy_folder(tmp_path / "source", tmp_path / "copy", ArchiveLimits(size=1000, count=100_000))
    delete_folder(tmp_path / "source")
    assert list(tmp_path.iterdir()) == []


def test_what_is_ignored_is_not_copied_and_not_counted(source: Path, tmp_path: Path) -> None:
    into = tmp_path / "copy"
    copy_folder(source, into, ArchiveLimits(size=5, count=3), ["lib/", "train.py"].__contains__)
    assert [path.name for path in into.iterdir()] == ["data"]
