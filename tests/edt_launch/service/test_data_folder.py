from pathlib import Path

from edt_launch.service import data_folder


def test_folders_two_deep_can_be_chosen_from(tmp_path: Path) -> None:
    (tmp_path / "mnist" / "raw" / "train").mkdir(parents=True)
    (tmp_path / "cifar").mkdir()
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "mnist" / "file").touch()
    assert data_folder.folders(tmp_path, 10) == ["cifar", "mnist", "mnist/raw"]
    assert data_folder.folders(tmp_path, 2) == ["cifar", "mnist"]
    assert data_folder.folders(tmp_path / "absent", 2) == []
