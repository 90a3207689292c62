"""Folders that go with their process, or with the next one."""

import subprocess
import sys
from pathlib import Path

import pytest

from edt_hvd.wmla.notebook import folders

PROGRAM = """
import runpy, sys
from pathlib import Path
own_folder = runpy.run_path(sys.argv[2])["own_folder"]  # torch is not needed for it
folder = own_folder(Path(sys.argv[1]))
(folder / "model").mkdir()
print(folder, flush=True)
sys.stdin.read()
"""


def begun(parent: Path) -> tuple["subprocess.Popen[str]", Path]:
    """A process, and the folder that it has made."""
    command = [sys.executable, "-c", PROGRAM, str(parent), folders.__file__]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().rstrip())


@pytest.mark.parametrize("end", ["close", "kill"])
def test_nothing_stays_of_a_process_that_is_gone(tmp_path: Path, end: str) -> None:
    others = [tmp_path / "edt-notebook.txt", tmp_path / "mine"]
    others[0].touch()
    others[1].mkdir()
    (tmp_path / "edt-notebook-link").symlink_to(others[1])
    first, left = begun(tmp_path)
    living, kept = begun(tmp_path)
    assert {left.parent, kept.parent} == {tmp_path}
    if end == "kill":
        first.kill()
    first.communicate()
    assert (left / "model").exists() == (end == "kill")
    after, own = begun(tmp_path)
    assert sorted(path for path in tmp_path.glob("edt-notebook-*") if not path.is_symlink()) == sorted(
        [kept, own]
    )
    for process in (living, after):
        process.communicate()
    assert sorted(tmp_path.iterdir()) == sorted([*others, tmp_path / "edt-notebook-link"])
