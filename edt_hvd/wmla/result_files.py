"""How results get from executors to the driver: lines of JSON in files that outlive their writers.

The coordinator of every generation appends to a file of its own, ``results.1.jsonl`` and so on. It begins
with the last results from before: the coordinator of the generation before it may have died before it had
written them, or its host before they were in the file system. The driver reads the files in their order and
drops what it knows (`results.Deduplicator`).
"""

import contextlib
import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import edt_hvd
from edt_hvd.wmla.results import Begun, Deduplicator, Message, Result, decode, encode

REPEATED = 64
"""Results that a generation's coordinator writes once more."""

_NAME = re.compile(r"results\.(\d+)\.jsonl")


class ResultWriter:
    """An executor's end; writes while this executor is the coordinator.

    Args:
        folder: of the training.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._recent: deque[Result] = deque(maxlen=REPEATED)
        self._deduplicator = Deduplicator()
        self._file: IO[bytes] | None = None

    def emit(self, message: Message) -> None:
        """Write the message, or have it written by the coordinator of the next generation."""
        if isinstance(message, Begun):
            self.close()
            if edt_hvd.is_coordinator():
                self._file = _created(self._folder)
                self._write(message, *self._recent)
        elif self._deduplicator.admits(message):
            self._recent.append(message)
            if self._file is not None:
                self._write(message)

    def close(self) -> None:
        """Close the file of the generation."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, *messages: Message) -> None:
        assert self._file is not None
        self._file.write(b"".join(map(encode, messages)))
        self._file.flush()


class ResultReader:
    """The driver's end.

    Args:
        folder: of the training.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[int, int] = {}
        """Bytes that have been read of each file, by its number."""

    def new(self) -> Iterator[Message]:
        """What has been written since the last call, in order.

        Raises:
            ValueError: a line is no message.
        """
        # The newest file's size first: what is in it then was written after all that the older ones have.
        sizes = {number: _path(self.folder, number).stat().st_size for number in _numbers(self.folder)}
        for number in sorted(sizes):
            at = self._read.get(number, 0)
            if at < sizes[number]:
                with _path(self.folder, number).open("rb") as file:
                    file.seek(at)
                    content = file.read(sizes[number] - at)
                whole = content.rfind(b"\n") + 1  # the rest of a line follows, unless its writer has died
                self._read[number] = at + whole
                yield from map(decode, content[:whole].splitlines())


def _path(folder: Path, number: int) -> Path:
    return folder / f"results.{number}.jsonl"


def _numbers(folder: Path) -> list[int]:
    """The numbers of the files that there are, the newest first."""
    found = map(_NAME.fullmatch, (path.name for path in folder.iterdir()))
    return sorted((int(match[1]) for match in found if match), reverse=True)


def _created(folder: Path) -> IO[bytes]:
    """The file of a new generation."""
    number = max(_numbers(folder), default=0)
    while True:
        number += 1
        with contextlib.suppress(FileExistsError):
            return _path(folder, number).open("xb")
