from pathlib import Path
from typing import Literal

import pytest

from edt_launch.core.plain_files import NoFileError, open_file, read
from no_files import KINDS, put

MODES: tuple[Literal["rb", "ab"], ...] = ("rb", "ab")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_no_file_is_refused_at_once(tmp_path: Path, kind: str, mode: Literal["rb", "ab"]) -> None:
    path = tmp_path / "log"
    put(kind, path)
    with pytest.raises(NoFileError, match="no file"):
        open_file(path, mode)


def test_files_are_read_to_a_limit_and_made(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with pytest.raises(FileNotFoundError):
        read(path)
    with open_file(path, "ab") as file:
        file.write(b"text")
    assert (read(path), read(path, 2)) == (b"text", b"te")
