"""Where data sets are before they are in their place, and after they have left it."""

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from edt_launch.service.data.disk import explained, first_link
from edt_launch.service.data.folders import OWN
from edt_launch.service.errors import UnavailableError
from edt_launch.service.files.archives.deleting import delete_folder

UPLOADS = f"{OWN}uploads"

RETURN = "place"
"""A file beside a data set that is being replaced: owner and name of where it goes back to."""


class Uploads:
    """A folder of a service below the folder of data.

    Args:
        root: the folder of data, which is not made.
        service: tells services that share the folder apart.
    """

    def __init__(self, root: Path, service: str) -> None:
        self._root = root
        self.folder = root / UPLOADS / service

    @contextlib.contextmanager
    def received(self, expected: int = 0) -> Iterator[BinaryIO]:
        """A file for what is being received, of `expected` bytes at least; it is gone afterwards.

        Raises:
            UnavailableError: the disk has no room for it, or cannot be written.
        """
        with explained():
            self.make()
            free = shutil.disk_usage(self.folder).free
            if expected > free:
                raise UnavailableError(
                    f"the upload has {expected:,} bytes, and the disk of the data folder has {free:,} left",
                    "delete data sets, or ask the administrator for room",
                )
            with self.beside() as beside, (beside / "received").open("w+b") as file:
                yield file

    @contextlib.contextmanager
    def beside(self) -> Iterator[Path]:
        """A folder for what is not in its place yet; it is deleted afterwards with what is left in it.

        It stays for `settle` if a data set in it could not go back to its place.
        """
        self.make()
        folder = self.folder / secrets.token_hex(8)
        folder.mkdir()
        try:
            yield folder
        finally:
            if not os.path.lexists(folder / RETURN):
                delete_folder(folder)

    def make(self) -> None:
        """Make the folder.

        Raises:
            UnavailableError: the folder of data is missing, or a link is in the way.
        """
        if not self._root.is_dir():
            raise UnavailableError(
                f"the data folder {self._root} is missing", "ask the administrator to mount or create it"
            )
        if link := self.link():
            raise UnavailableError(f"{link} is a link, which is not followed", "tell its administrator")
        self.folder.mkdir(parents=True, exist_ok=True)

    def link(self) -> Path | None:
        """A link in its place, which is not followed."""
        return first_link(self.folder.parent, self.folder)
