"""Deleting folders, however deep they are: jobs' programs make what they like.

Paths must not be too long, and Python does not recurse for ever: folders within folders are moved to the top
first, where one after the other is emptied.
"""

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import structlog

log = structlog.get_logger()

_OPENING = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_ITSELF = "."


def delete_folder(folder: Path) -> None:
    """Delete a folder, if it is there, with all that is in it; links are not followed.

    What cannot be deleted stays, and the log says so.
    """
    problems: list[OSError] = []
    try:
        top = os.open(folder, _OPENING)
    except FileNotFoundError:
        return
    except OSError as error:
        problems.append(error)
    else:
        try:
            _empty(top, problems)
        finally:
            os.close(top)
        with _noting(problems):
            os.rmdir(folder)
    if problems:
        log.warning("a folder cannot be deleted", folder=str(folder), reason=str(problems[0]))


def delete_file(file: Path) -> None:
    """Delete a file, if it is there; if that cannot be done it stays, and the log says so."""
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        log.warning("a file cannot be deleted", file=str(file), reason=str(error))


@contextlib.contextmanager
def _noting(problems: list[OSError]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        problems.append(error)


def _empty(top: int, problems: list[OSError]) -> None:
    pending = [_ITSELF]
    while pending:
        name = pending.pop()
        with _noting(problems):
            folder = os.open(name, _OPENING, dir_fd=top)
            try:
                pending += _move_folders_up(folder, top, problems)
            finally:
                os.close(folder)
            if name != _ITSELF:
                os.rmdir(name, dir_fd=top)


def _move_folders_up(folder: int, top: int, problems: list[OSError]) -> Iterator[str]:
    """Delete a folder's files, and move the folders in it to the top; gives their new names."""
    with os.scandir(folder) as entries:
        present = list(entries)
    for entry in present:
        with _noting(problems):
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.name, dir_fd=folder)
                continue
            os.chmod(entry.name, 0o700, dir_fd=folder)  # a program may have closed it to itself
            new = secrets.token_hex(16)
            os.rename(entry.name, new, src_dir_fd=folder, dst_dir_fd=top)
            yield new
