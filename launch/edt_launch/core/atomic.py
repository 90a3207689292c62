"""Replacing files in one go."""

import os
from pathlib import Path


def write_atomically(path: Path, text: str) -> None:
    """Replace the file in one go: readers see the old text or the new one, also after a crash.

    Raises:
        OSError: the folder is missing, full or not writable.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        beside.unlink(missing_ok=True)  # it may be a pipe
        with beside.open("x", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
