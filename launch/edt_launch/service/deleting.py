"""Deleting folders, however deep they are: jobs' programs make what they like.

Paths must not be too long, and Python does not recurse for ever: folders within folders are moved to the top
first, where one after the other is emptied.
"""

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import structlog

log = structlog.get_logger()

_OPENING = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_ITSELF = "."


def delete_folder(folder: Path) -> None:
    """Delete a folder, if it is there, with all that is in it; links are not followed.

    What cannot be deleted stays, and the log says so.
    """
    try:
        top = os.open(folder, _OPENING)
    except FileNotFoundError:
        return
    except OSError as error:
        _tell(folder, error)
        return
    try:
        deletion = _Deletion(top)
        deletion.run()
    finally:
        os.close(top)
    deletion.attempt(os.rmdir, folder)
    if deletion.trouble is not None:
        _tell(folder, deletion.trouble)


def delete_file(file: Path) -> None:
    """Delete a file, if it is there; if that cannot be done it stays, and the log says so."""
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        log.warning("a file cannot be deleted", file=str(file), reason=str(error))


def _tell(folder: Path, trouble: OSError) -> None:
    log.warning("a folder cannot be deleted", folder=str(folder), reason=str(trouble))


class _Deletion:
    """Empties an open folder.

    Attributes:
        trouble: the first thing that could not be done.
    """

    def __init__(self, top: int) -> None:
        self.trouble: OSError | None = None
        self._top = top
        self._pending = [_ITSELF]
        """Folders in it that are to be deleted."""

    def run(self) -> None:
        while self._pending:
            self.attempt(self._delete, self._pending.pop())

    def attempt(self, do: Callable[..., None], *arguments: Any, **named: Any) -> None:
        try:
            do(*arguments, **named)
        except OSError as error:
            self.trouble = self.trouble or error

    def _delete(self, name: str) -> None:
        folder = os.open(name, _OPENING, dir_fd=self._top)
        try:
            with os.scandir(folder) as entries:
                found = list(entries)
            for entry in found:
                if entry.is_dir(follow_symlinks=False):
                    self.attempt(self._move_up, entry.name, folder)
                else:
                    self.attempt(os.unlink, entry.name, dir_fd=folder)
        finally:
            os.close(folder)
        if name != _ITSELF:
            os.rmdir(name, dir_fd=self._top)

    def _move_up(self, name: str, folder: int) -> None:
        os.chmod(name, 0o700, dir_fd=folder)  # a program may have closed it to itself
        new = secrets.token_hex(16)
        os.rename(name, new, src_dir_fd=folder, dst_dir_fd=self._top)
        self._pending.append(new)
