"""Events that a worker writes into a file, where no launcher listens."""

import json
import os
import time
import warnings

from edt_messages.messages import Message, type_of
from edt_messages.records import content

MAX_BYTES = 2**16
"""Longer lines are not written: edt-launch would not read them."""


class ReportFile:
    """Appends events to a file, one JSON object a line.

    A file that cannot be written, because it is on another host for instance, is warned of once.

    Args:
        path: the file, as `edt-launch --horovodrun` names it in ``EDT_REPORTS``.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._has_failed = False

    def send(self, message: Message) -> None:
        """Append an event; one write, so that lines of several workers do not mix."""
        line = (
            json.dumps({"event": type_of(message), "time": time.time(), **content(message)}).encode() + b"\n"
        )
        if self._has_failed or len(line) > MAX_BYTES:
            return
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK, 0o666)
            try:
                os.write(descriptor, line)
            finally:
                os.close(descriptor)
        except OSError as error:
            self._has_failed = True
            warnings.warn(
                f"the progress of this job cannot be reported: {self._path}: {error.strerror}", stacklevel=2
            )
