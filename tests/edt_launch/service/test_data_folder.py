import os
from pathlib import Path

import pytest

from edt_launch.service import data_folder


def test_folders_two_deep_can_be_chosen_from(tmp_path: Path) -> None:
    (tmp_path / "mnist" / "raw" / "train").mkdir(parents=True)
    (tmp_path / "cifar").mkdir()
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "mnist" / "file").touch()
    assert data_folder.folders(tmp_path, 10) == ["cifar", "mnist", "mnist/raw"]
    assert data_folder.folders(tmp_path, 2) == ["cifar", "mnist"]
    assert data_folder.folders(tmp_path / "absent", 2) == []


def test_a_folder_that_cannot_be_read_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b/c"):
        (tmp_path / name).mkdir(parents=True)
    opened = os.open

    def refuse(path: str, flags: int, **options: int) -> int:
        if path == "a":
            raise PermissionError(13, "Permission denied")
        return opened(path, flags, **options)

    monkeypatch.setattr(os, "open", refuse)
    assert data_folder.folders(tmp_path, 10) == ["a", "b", "b/c"]
