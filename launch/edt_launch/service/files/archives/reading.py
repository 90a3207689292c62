"""How files are read that are packed."""

import os
from pathlib import Path
from typing import BinaryIO, Protocol

from edt_launch.core.files.plain_files import open_file


class Reader(Protocol):
    """Reads what is at a path; all methods raise `OSError` if that cannot be read any more."""

    def status(self, path: Path) -> os.stat_result:
        """What it is; of a link, the link itself."""

    def target(self, path: Path) -> str:
        """What a link points to."""

    def open(self, path: Path) -> BinaryIO:
        """Open a regular file and nothing else, without waiting."""


class ByPath:
    """Implements `Reader` for folders of which no part is replaced by a link meanwhile."""

    def status(self, path: Path) -> os.stat_result:
        """Implements `Reader`."""
        return path.lstat()

    def target(self, path: Path) -> str:
        """Implements `Reader`."""
        return os.readlink(path)

    def open(self, path: Path) -> BinaryIO:
        """Implements `Reader`."""
        return open_file(path)
