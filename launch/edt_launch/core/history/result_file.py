"""How a launcher has ended, in a file that can be written on a full disk: its room is taken at the start."""

import contextlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from edt_launch.core.files import plain_files

SIZE = 4096
"""Bytes of the file, whatever it says."""

MAX_MESSAGE = 280
"""Characters of the message that are kept: there is room for them, whatever they are."""


@dataclass(frozen=True)
class LauncherResult:
    """How the launcher with this process number and start time has ended."""

    pid: int
    started: float
    exit_code: int
    message: str = ""


class ResultFile:
    """Where the result will be written; what another launcher has written there is gone.

    Raises:
        OSError: the file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            self._fill(b"")
        except OSError:
            self.close()
            raise

    def write(self, result: LauncherResult) -> None:
        """Say how the launcher has ended; a disk that fails even now is tolerated, as events say it, too."""
        with contextlib.suppress(OSError):
            self._fill(json.dumps({**asdict(result), "message": result.message[:MAX_MESSAGE]}).encode())

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _fill(self, text: bytes) -> None:
        data = text.ljust(SIZE - 1) + b"\n"
        if os.pwrite(self._descriptor, data, 0) == len(data):
            os.fsync(self._descriptor)


def read(path: Path) -> LauncherResult | None:
    """What a launcher has written; None if it has not ended, or the job has put something else there."""
    try:
        content = json.loads(plain_files.read(path, SIZE))
        pid, code = int(content["pid"]), int(content["exit_code"])
        return LauncherResult(pid, float(content["started"]), code, str(content["message"]))
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
