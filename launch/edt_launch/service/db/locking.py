"""Locks on files: the system lets go of them when who has them ends, however that happens."""

import fcntl
from pathlib import Path
from typing import IO


def lock(path: Path) -> IO[bytes]:
    """Lock a file until what is returned is closed; `BlockingIOError` if somebody else has the lock."""
    file = path.open("ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        file.close()
        raise
    return file
