import os
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from edt_launch.service.files.archives.deleting import delete_folder


def test_a_folder_is_deleted_with_all_that_is_in_it(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    folder = tmp_path / "folder"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "file").write_text("x")
    (folder / "a" / "link").symlink_to(outside)
    (folder / "link").symlink_to(outside)
    os.mkfifo(folder / "pipe")
    (folder / "closed" / "in").mkdir(parents=True)
    (folder / "closed" / "in").chmod(0)
    (folder / "closed").chmod(0o500)
    with capture_logs() as logs:
        delete_folder(folder)
        delete_folder(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["outside"]
    assert (outside / "kept").read_text() == "x"
    assert logs == []


def test_what_cannot_be_deleted_stays_alone_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlink = os.unlink

    def refuse(path: Any, *, dir_fd: int | None = None) -> None:
        if path == "stuck":
            raise PermissionError(1, "Operation not permitted", path)
        unlink(path, dir_fd=dir_fd)

    folder = tmp_path / "folder"
    for name in ("a", "b", "c"):
        (folder / name).mkdir(parents=True)
        (folder / name / "file").touch()
    (folder / "b" / "stuck").touch()
    with monkeypatch.context() as patched, capture_logs() as logs:
        patched.setattr(os, "unlink", refuse)
        delete_folder(folder)
    assert [path.name for path in folder.rglob("*") if path.is_file()] == ["stuck"]
    assert [(line["event"], line["folder"]) for line in logs] == [("a folder cannot be deleted", str(folder))]
    assert "stuck" in logs[0]["reason"]
