"""Appending to a file whatever becomes of its disk."""

import os
from collections import deque
from collections.abc import Callable
from pathlib import Path

Complain = Callable[[str], None]


CHUNK = 2**16
"""Bytes after which a file with a limit is written, so that it is known when it is full."""

TAIL = 2**20
"""Bytes at the end of the output that a file with a limit has in any case, or half of the limit."""


class LastBytes:
    """The last `size` bytes of what it is given, and how many came before them."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._pieces: deque[bytes] = deque()
        self._length = 0
        self._dropped = 0

    def add(self, data: bytes) -> None:
        """Take more bytes in."""
        self._pieces.append(data)
        self._length += len(data)
        while self._pieces and self._length - len(self._pieces[0]) >= self._size:
            dropped = len(self._pieces.popleft())
            self._length -= dropped
            self._dropped += dropped

    def lines(self) -> tuple[int, bytes]:
        """How many bytes are left out, and the whole lines that follow them."""
        data = b"".join(self._pieces)
        start = max(0, self._length - self._size)
        if start or self._dropped:
            start = data.find(b"\n", start) + 1 or start
        return self._dropped + start, data[start:]


class Appender:
    """Appends text to a file. What cannot be written is dropped, which `complain` is told of once.

    The first `keeps` bytes of it are kept instead, and written as soon as there is room again. A file has
    `limit` bytes at most: the beginning of the output and, once it is closed, its end. A line between them
    says what was left out, and `complain` is told.
    """

    def __init__(self, path: Path, complain: Complain, keeps: int = 0, limit: int | None = None) -> None:
        self._keeps = keeps
        self._limit = limit
        self._tail = LastBytes(min(TAIL, (limit or 0) // 2))
        self._is_full = False
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
        if self._is_full:
            self._tail.add(data)
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
                data = self._within(data, self._limit, os.fstat(self._descriptor).st_size)
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

    def _within(self, data: bytes, limit: int, size: int) -> bytes:
        """The whole lines for which there is room, and after them that there was no more."""
        room = limit - min(TAIL, limit // 2) - size
        if self._is_full or len(data) <= room:
            return data
        self._is_full = True
        reason = f"the limit of {limit} bytes (--max-log-size) is reached"
        self._complain(f"{self._path}: {reason}; only the end of the rest will be kept")
        kept = data[: max(room, 0)]
        kept = kept[: kept.rfind(b"\n") + 1]
        self._tail.add(data[len(kept) :])
        return kept + f"edt-launch: {reason}; the end of the output follows once the job has ended\n".encode()

    def close(self) -> None:
        """Write the rest, or its end where the limit was reached, and close the file."""
        self.flush()
        if self._is_full:
            left_out, lines = self._tail.lines()
            self._pending += [f"edt-launch: {left_out} bytes are left out here\n".encode(), lines]
            self.flush()
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
