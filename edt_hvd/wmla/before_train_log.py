"""What an executor prints before `train`, in a file of its own: the driver's script prints the same."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

NAME = "before-train.log"


class BeforeTrainLog:
    """Redirects standard output and error, also of what is not written in Python, to a file in ``LOG_DIR``.

    Without such a folder nothing is redirected.
    """

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self.path = Path(environ["LOG_DIR"], NAME) if "LOG_DIR" in environ else None
        self._kept: dict[int, int] = {}

    def begin(self) -> None:
        """Redirect from now on."""
        if self.path is None or not self.path.parent.is_dir():
            return
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        _flush()
        for descriptor in (1, 2):
            self._kept[descriptor] = os.dup(descriptor)
            os.dup2(file, descriptor)
        os.close(file)

    def end(self) -> None:
        """Write to standard output and error again."""
        _flush()
        while self._kept:
            descriptor, kept = self._kept.popitem()
            os.dup2(kept, descriptor)
            os.close(kept)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
