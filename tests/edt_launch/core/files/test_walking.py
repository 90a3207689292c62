from pathlib import Path

from edt_launch.core.files.walking import walk


def test_everything_is_told_by_name_and_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "b" / "deep").mkdir(parents=True)
    (tmp_path / "b" / "deep" / "x").touch()
    (tmp_path / "a").touch()
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "y").touch()
    (tmp_path / "link").symlink_to("b")
    found = [path.relative_to(tmp_path).as_posix() for path in walk(tmp_path)]
    assert found == ["a", "b", "c", "link", "b/deep", "b/deep/x", "c/y"]
    assert list(walk(tmp_path / "link")) == []
    assert list(walk(tmp_path / "missing")) == []
