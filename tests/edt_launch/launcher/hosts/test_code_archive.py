"""Which files a program needs on other hosts, and their archive."""

import sys
import tarfile
from pathlib import Path

import pytest

from edt_launch.launcher.hosts import code_archive
from edt_launch.launcher.hosts.code_archive import CodeError, folder_of, pack


@pytest.mark.parametrize(
    "command, folder",
    [
        ([sys.executable, "-u", "train.py", "--lr", "1"], "/home/ann"),
        ([sys.executable, "src/train.py"], "/home/ann/src"),
        (["python", "/opt/train.py"], "/opt"),
        (["bash", "run.sh"], "/home/ann"),
        (["./bin/train"], "/home/ann/bin"),
        (["python", "-m", "pkg.train"], "/home/ann"),
        (["sleep", "5"], None),
    ],
)
def test_the_folder_is_that_of_the_script_or_program(command: list[str], folder: str | None) -> None:
    assert folder_of(command, Path("/home/ann")) == (folder and Path(folder))


def test_an_archive_has_what_a_submission_has_and_the_same_bytes_each_time(tmp_path: Path) -> None:
    code = tmp_path / "code"
    for name in ("train.py", "pkg/a.py", ".git/config", "runs/old/log", "data.bin"):
        (code / name).parent.mkdir(parents=True, exist_ok=True)
        (code / name).write_text(name)
    (code / ".edtignore").write_text("data.bin\n")
    (code / "link").symlink_to("train.py")
    (code / "outside").symlink_to("/etc/passwd")
    one, other = (pack(code, tmp_path / name) for name in ("one", "other"))
    assert (one.digest, one.size) == (other.digest, one.path.stat().st_size)
    with tarfile.open(one.path) as archive:
        assert archive.getnames() == [".edtignore", "link", "pkg", "pkg/a.py", "train.py"]


def test_too_much_code_is_refused_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_archive, "MAX_BYTES", 2**20)
    (tmp_path / "data").write_bytes(bytes(2**20 + 1))
    with pytest.raises(CodeError, match=r"more than 20000 files or 1 MiB; name in .*\.edtignore"):
        pack(tmp_path, tmp_path / "archive")
