"""The disk of the data folder: what goes wrong with it, and what must not be followed."""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from edt_launch.core.files.walking import walk
from edt_launch.service.errors import UnavailableError

_TROUBLE = {
    errno.ENOSPC: "is full",
    errno.EDQUOT: "is full: its quota is used up",
    errno.EROFS: "is read-only",
    errno.EACCES: "must not be written by the service",
    errno.EPERM: "must not be written by the service",
    errno.EXDEV: "has another file system mounted in it",
    errno.EBUSY: "has another file system mounted in it",
    errno.ENOTDIR: "has a file in the place of a folder",
    errno.EEXIST: "has a file in the place of a folder",
    errno.ENOENT: "has lost a folder meanwhile",
    errno.ENAMETOOLONG: "does not take so long a name",
    errno.EIO: "reports an error",
    errno.ESTALE: "was unmounted or exchanged",
    errno.ENOTCONN: "does not answer",
    errno.ETIMEDOUT: "does not answer",
}


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Raise `UnavailableError` for what goes wrong with the disk."""
    try:
        yield
    except OSError as error:
        if error.errno not in _TROUBLE:
            raise
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise UnavailableError(
            f"the disk of the data folder {_TROUBLE[error.errno]}: nothing was changed",
            "delete data sets, or ask the administrator for room" if is_full else "tell its administrator",
        ) from None


def first_link(*paths: Path) -> Path | None:
    """The first of some paths that is a symbolic link."""
    return next((path for path in paths if os.path.islink(path)), None)


def remove_empty(folder: Path) -> None:
    """Remove a folder unless there is something in it."""
    with contextlib.suppress(OSError):
        folder.rmdir()


def open_to_all(folder: Path) -> None:
    """Let other accounts read what is in a new folder, whatever the service's umask says."""
    for path in (folder, *walk(folder)):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
