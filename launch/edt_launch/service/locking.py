"""Locks on files: the system lets go of them when who has them ends, however that happens."""

import fcntl
from pathlib import Path
from typing import IO


def lock(path: Path) -> IO[bytes]:
    """Lock a file, which is made if it is not there, until what is returned is closed.

    Raises:
        BlockingIOError: somebody else has the lock.
        OSError: the file cannot be made.
    """
    file = path.open("ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        file.close()
        raise
    return file
