"""Temporary folders that go with their process; those of processes that were killed go with the next one."""

import atexit
import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

PREFIX = "edt-notebook-"

LOG = "edt-launch.log"
"""What edt-launch prints, in such a folder."""


def own_folder(parent: Path) -> Path:
    """Make a folder in `parent` that is removed when this process ends, and remove what is left of others.

    The process has a lock on it, which the system gives up when the process ends, however that comes.
    """
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        if _lock(folder) is not None and folder.exists():  # else another has taken it for a leftover
            break
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for other in parent.glob(f"{PREFIX}*"):
        if other != folder and (descriptor := _lock(other)) is not None:
            shutil.rmtree(other, ignore_errors=True)
            os.close(descriptor)
    return folder


def _lock(folder: Path) -> int | None:
    """A descriptor that has the lock of this user's folder; None if another process has it, or it is gone."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:  # gone, or another user's
        return None
    with suppress(OSError):
        if os.fstat(descriptor).st_uid == os.geteuid():
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
    os.close(descriptor)
    return None
