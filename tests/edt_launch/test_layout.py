"""Files and folders stay small enough to be read at once."""

from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]

MAX_LINES, MAX_MODULES = 400, 15


def test_no_file_and_no_folder_is_too_large() -> None:
    packages = ("edt_hvd", "edt_messages", "edt_rendezvous", "launch/edt_launch")
    files = [file for package in packages for file in ROOT.joinpath(package).rglob("*.py")]
    assert len(files) > 100
    lines = {file: file.read_bytes().count(b"\n") for file in files}
    assert {file: count for file, count in lines.items() if count > MAX_LINES} == {}
    modules = Counter(file.parent for file in files)
    assert {folder: count for folder, count in modules.items() if count > MAX_MODULES} == {}
