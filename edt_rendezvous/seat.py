"""Which agent of torchrun on this machine is which: each holds the lock of the lowest number that is free."""

import fcntl
import os
import tempfile
import zlib
from itertools import count
from pathlib import Path


class Seat:
    """A number that no other agent of the job on this machine has; it is free when the process ends.

    Args:
        job: what all agents of the job have in common.
        folder: of the lock files; by default the system's folder for temporary ones.

    Attributes:
        number: from 0.
    """

    def __init__(self, job: str, folder: Path | None = None) -> None:
        name = f"edt-torchrun-{os.getuid()}-{zlib.crc32(job.encode()):08x}"
        self._beginning = str((folder or Path(tempfile.gettempdir())) / name)
        self.number = -1
        self._lock = -1
        self._take(count())

    def take_lower(self) -> bool:
        """Exchange the number for a lower one, if its agent has ended."""
        return self._take(range(self.number))

    def release(self) -> None:
        """Leave the number to another agent."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _take(self, numbers: "count[int] | range") -> bool:
        for number in numbers:
            lock = os.open(f"{self._beginning}.{number}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                continue
            self.release()
            self.number, self._lock = number, lock
            return True
        return False
