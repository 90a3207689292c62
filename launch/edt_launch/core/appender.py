"""Appending to a file whatever becomes of its disk."""

import os
from collections.abc import Callable
from pathlib import Path

Complain = Callable[[str], None]


class Appender:
    """Appends text to a file. What cannot be written is dropped, which `complain` is told of once.

    The first `keeps` bytes of it are kept instead, and written as soon as there is room again.
    """

    def __init__(self, path: Path, complain: Complain, keeps: int = 0) -> None:
        self._keeps = keeps
        self._path = path
        self._complain = complain
        self._pending: list[bytes] = []
        self._descriptor: int | None = None
        self.is_failing = False
        """Whether the last write has failed."""
        self._is_torn = False

    def write(self, text: str) -> None:
        """Append text with the next `flush`."""
        self.write_bytes(text.encode(errors="replace"))

    def write_bytes(self, data: bytes) -> None:
        """Append bytes as they are with the next `flush`."""
        if self.is_failing and self._keeps and sum(map(len, self._pending)) + len(data) > self._keeps:
            return
        self._pending.append(data)

    def flush(self) -> None:
        """Let readers see everything written so far."""
        if not self._pending:
            return
        data = b"".join([b"\n" * self._is_torn, *self._pending])
        self._pending.clear()
        try:
            if self._descriptor is None:
                self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
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

    def close(self) -> None:
        """Write the rest and close the file."""
        self.flush()
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
