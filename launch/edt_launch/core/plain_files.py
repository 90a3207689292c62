"""Opening files of jobs' folders: programs may put anything in place of one, which nobody is to wait for."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, Literal

MOST = 2**20
"""Bytes of a file that is read whole: far more than any of ours has."""

_NO_FILES = frozenset({errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR, errno.ENXIO})
"""What opening folders, links, pipes that nobody reads, and paths through files may end in."""


class NoFileError(OSError):
    """Something else is in the place of a file or of its folder: a pipe, a device, a link, a folder."""


def open_file(path: Path, mode: Literal["rb", "rb+", "ab"] = "rb", buffering: int = -1) -> BinaryIO:
    """Open a regular file and nothing else, without waiting.

    Raises:
        NoFileError: something else is there.
        OSError: it cannot be opened.
    """
    return open(path, mode, buffering, opener=_descriptor)


def read(path: Path, most: int = MOST) -> bytes:
    """The first `most` bytes of a regular file.

    Raises:
        OSError: as `open_file`.
    """
    with open_file(path) as file:
        return file.read(most)


def _descriptor(path: str, flags: int) -> int:
    try:
        descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
    except OSError as error:
        if error.errno not in _NO_FILES:
            raise
    raise NoFileError(errno.EINVAL, "it is no file", str(path))
