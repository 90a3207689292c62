"""Replacing files in one go."""

import os
from pathlib import Path


def write_atomically(path: Path, text: str, mode: int = 0o666) -> None:
    """Replace the file in one go: readers see the old text or the new one, also after a crash.

    `mode` is that of the file, less what the umask takes away.

    Raises:
        OSError: the folder is missing, full or not writable.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        beside.unlink(missing_ok=True)  # it may be a pipe
        with open(
            beside,
            "x",
            encoding="utf-8",
            errors="surrogateescape",
            newline="",
            opener=lambda name, flags: os.open(name, flags, mode),
        ) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
