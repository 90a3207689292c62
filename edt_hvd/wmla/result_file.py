"""How results get from executors to the driver: lines of JSON in a file that outlives its writers.

The coordinator of every generation appends to it. It begins with the last results from before: the
coordinator of the generation before it may have died before it had written them. The driver drops what it
knows (`results.Deduplicator`).
"""

import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import edt_hvd
from edt_hvd.wmla.results import END, Begun, Deduplicator, Message, Record, Result, decode, encode

REPEATED = 64
"""Results that a generation's coordinator writes once more."""


class ResultWriter:
    """An executor's end; writes while this executor is the coordinator."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._recent: deque[Result] = deque(maxlen=REPEATED)
        self._deduplicator = Deduplicator()

    def emit(self, message: Message) -> None:
        """Write the message, or have it written by the coordinator of the next generation."""
        if isinstance(message, Begun):
            if edt_hvd.is_coordinator():
                append(self._path, message, *self._recent)
        elif self._deduplicator.admits(message):
            self._recent.append(message)
            if edt_hvd.is_coordinator():
                append(self._path, message)


def append(path: Path, *messages: Record) -> None:
    """Append messages to a file of results, on lines of their own whatever it ends with."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    try:
        os.write(file, b"\n" + b"".join(map(encode, messages)))
    finally:
        os.close(file)


class ResultReader:
    """The driver's end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read = 0

    def new(self) -> Iterator[Record]:
        """What has been written since the last call, in order.

        Raises:
            ValueError: a line is no message.
        """
        if not self.path.exists() or self.path.stat().st_size <= self._read:
            return
        with self.path.open("rb") as file:
            file.seek(self._read)
            content = file.read()
        whole = content.rfind(b"\n") + 1  # the rest of a line follows, unless its writer has died
        self._read += whole
        yield from (decode(line) for line in content[:whole].splitlines() if not _is_torn(line))


def _is_torn(line: bytes) -> bool:
    """Whether a line is empty, or the beginning of one whose writer has died."""
    return not line or (line.startswith(b"{") and not line.endswith(END))
