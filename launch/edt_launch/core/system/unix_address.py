"""Addresses of Unix sockets, whose paths the kernel limits to 107 bytes."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def unix_address(path: Path) -> Iterator[str]:
    """A short name of a socket's path, to bind or connect to: that of its folder is of any length.

    Raises:
        OSError: there is no such folder.
    """
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
