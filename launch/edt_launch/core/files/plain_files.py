"""Opening files of jobs' folders: programs may put anything in place of one, which nobody is to wait for."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, Literal

MAX_BYTES = 2**20
"""Bytes of a file that is read whole: far more than any of ours has."""

_NO_FILES = frozenset({errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR, errno.ENXIO})
"""What opening folders, links, pipes that nobody reads, and paths through files may end in."""


_jobs: Path | None = None


def keep_to_owners(jobs: Path) -> None:
    """From now on open a file in a folder of `jobs` only if it is of the same account as that folder.

    A program that runs under an account of its own may put links in the place of its job's folders.
    """
    global _jobs
    _jobs = jobs


class NoFileError(OSError):
    """Something else is in the place of a file or of its folder: a pipe, a device, a link, a folder."""


def open_file(path: Path, mode: Literal["rb", "rb+", "ab"] = "rb", buffering: int = -1) -> BinaryIO:
    """Open a regular file and nothing else, without waiting.

    Raises:
        NoFileError: something else is there.
        OSError: it cannot be opened.
    """
    return open(path, mode, buffering, opener=_descriptor)


def read(path: Path, most: int = MAX_BYTES) -> bytes:
    """The first `most` bytes of a regular file.

    Raises:
        OSError: as `open_file`.
    """
    with open_file(path) as file:
        return file.read(most)


def _descriptor(path: str, flags: int) -> int:
    try:
        descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode) and _is_of_owner(path, status.st_uid):
            return descriptor
        os.close(descriptor)
    except OSError as error:
        if error.errno not in _NO_FILES:
            raise
    raise NoFileError(errno.EINVAL, "it is no file", str(path))


def _is_of_owner(path: str, owner: int) -> bool:
    if _jobs is None or not Path(path).is_relative_to(_jobs):
        return True
    job = Path(path).relative_to(_jobs).parts[0]
    return (_jobs / job).stat().st_uid == owner
