import io
import tarfile
from pathlib import Path

import pytest

from edt_launch.cli import packing
from edt_launch.cli.errors import MistakenError


def fill(folder: Path, *paths: str) -> None:
    for path in paths:
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"content of {path}")


def names(folder: Path) -> set[str]:
    code = packing.collect(folder)
    return {entry.path for entry in code.entries if (folder / entry.path).is_file()}


def archive(folder: Path) -> bytes:
    file = io.BytesIO()
    packing.write(packing.collect(folder), file)
    return file.getvalue()


def test_everything_but_what_nobody_wants_is_sent(tmp_path: Path) -> None:
    fill(tmp_path, "train.py", "lib/a.py", ".hidden")
    fill(tmp_path, "lib/__pycache__/a.pyc", ".git/config", ".venv/x", "runs/1", "b.pyc")
    assert names(tmp_path) == {"train.py", "lib/a.py", ".hidden"}


def test_the_ignore_file_speaks_gits_language(tmp_path: Path) -> None:
    fill(tmp_path, "train.py", "data/keep/x", "sub/top.txt", "runs/1")
    fill(tmp_path, "data/big.bin", "a.ckpt", "sub/a.ckpt", "top.txt")
    (tmp_path / ".edtignore").write_text("# comment\n*.ckpt\n/top.txt\ndata/*\n!data/keep/\n!runs/\n\n")
    assert names(tmp_path) == {".edtignore", "train.py", "data/keep/x", "sub/top.txt", "runs/1"}


def test_the_archive_has_contents_and_modes_but_no_owners(tmp_path: Path) -> None:
    fill(tmp_path, "run.sh")
    (tmp_path / "run.sh").chmod(0o755)
    with tarfile.open(fileobj=io.BytesIO(archive(tmp_path))) as found:
        member = found.getmember("run.sh")
        file = found.extractfile(member)
        assert file.read() == b"content of run.sh"
    assert (member.mode & 0o777, member.uid, member.uname) == (0o755, 0, "")


def test_the_same_files_make_the_same_bytes(tmp_path: Path) -> None:
    fill(tmp_path, "b.py", "a/c.py")
    assert archive(tmp_path) == archive(tmp_path)
    assert archive(tmp_path)[4:8] == bytes(4)  # where gzip has the time


def test_links_inside_are_sent_and_links_to_elsewhere_left_out(tmp_path: Path) -> None:
    fill(tmp_path, "a.py")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "inside").symlink_to("../a.py")
    (tmp_path / "sub" / "outside").symlink_to("../../elsewhere")
    (tmp_path / "data").symlink_to("/data")
    code = packing.collect(tmp_path)
    assert [entry.path for entry in code.entries] == ["a.py", "sub", "sub/inside"]
    assert code.left_out == ("data -> /data", "sub/outside -> ../../elsewhere")


def test_far_too_many_files_are_a_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "MANY", 3)
    fill(tmp_path, *(f"{i}.py" for i in range(5)))
    with pytest.raises(MistakenError, match=r"more than 3 files.*\.edtignore"):
        packing.collect(tmp_path)
