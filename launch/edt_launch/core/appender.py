"""Appending to a file whatever becomes of its disk."""

import os
from collections.abc import Callable
from pathlib import Path

Complain = Callable[[str], None]


CHUNK = 2**16
"""Bytes after which a file with a limit is written, so that it is known when it is full."""


class Appender:
    """Appends text to a file. What cannot be written is dropped, which `complain` is told of once.

    The first `keeps` bytes of it are kept instead, and written as soon as there is room again. A file of
    `limit` bytes takes no more: its last line says so, and `complain` is told.
    """

    def __init__(self, path: Path, complain: Complain, keeps: int = 0, limit: int | None = None) -> None:
        self._keeps = keeps
        self._limit = limit
        self.is_full = False
        """Whether the limit was reached."""
        self._path = path
        self._complain = complain
        self._pending: list[bytes] = []
        self._unflushed = 0
        self._descriptor: int | None = None
        self.is_failing = False
        """Whether the last write has failed."""
        self._is_torn = False

    def write(self, text: str) -> None:
        """Append text with the next `flush`."""
        self.write_bytes(text.encode(errors="replace"))

    def write_bytes(self, data: bytes) -> None:
        """Append bytes as they are with the next `flush`."""
        if self.is_full:
            return
        if self.is_failing and self._keeps and sum(map(len, self._pending)) + len(data) > self._keeps:
            return
        self._pending.append(data)
        self._unflushed += len(data)
        if self._limit is not None and self._unflushed >= CHUNK:
            self.flush()

    def flush(self) -> None:
        """Let readers see everything written so far."""
        if not self._pending:
            return
        data = b"".join([b"\n" * self._is_torn, *self._pending])
        self._pending.clear()
        self._unflushed = 0
        try:
            if self._descriptor is None:
                self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
            if self._limit is not None:
                data = self._within(data, self._limit - os.fstat(self._descriptor).st_size)
            while data:
                data = data[os.write(self._descriptor, data) :]
                self._is_torn = bool(data)  # a line that has an end, should the rest not fit
        except OSError as error:
            if len(data) <= self._keeps:
                self._pending, self._is_torn = [data], False
            if not self.is_failing:
                self._complain(
                    f"{self._path} cannot be written: {error.strerror}; the job goes on without it"
                )
            self.is_failing = True
        else:
            self.is_failing = False

    def _within(self, data: bytes, room: int) -> bytes:
        """The whole lines for which there is room, and after them that there was no more."""
        if len(data) <= room:
            return data
        self.is_full = True
        reason = f"--max-log-size {self._limit} is reached; what follows is not kept"
        self._complain(f"{self._path}: {reason}")
        kept = data[: max(room, 0)]
        return kept[: kept.rfind(b"\n") + 1] + f"edt-launch: {reason}\n".encode()

    def close(self) -> None:
        """Write the rest and close the file."""
        self.flush()
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
