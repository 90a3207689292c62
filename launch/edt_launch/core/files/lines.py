"""Whole lines out of the pieces of a file, in linear time and with bounded memory."""

from collections.abc import Iterator

MAX_LINE_BYTES = 2**16
"""Bytes of a line; longer ones are skipped."""


class LineSplitter:
    """Puts lines together from whatever pieces of them have been read.

    Args:
        offset: where in the file the first piece begins.
        longest: bytes of a line that is kept; a longer one is skipped.
        is_within: whether the first piece begins in the middle of a line, which is skipped.

    Attributes:
        offset: where in the file the line after the last whole one begins.
        pending: bytes taken in after that.
        skipped: lines that were too long.
    """

    def __init__(self, offset: int = 0, longest: int = MAX_LINE_BYTES, *, is_within: bool = False) -> None:
        self.offset = offset
        self.pending = 0
        self.skipped = 0
        self._longest = longest
        self._pieces: list[bytes] = []
        self._is_within = is_within

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The lines that `data` completes, without their ends. While one is handled, `offset` is its end."""
        start = 0
        while end := data.find(b"\n", start) + 1:
            self._add(data[start : end - 1])
            line = b"".join(self._pieces)
            is_whole = not self._is_within and self.pending <= self._longest
            self.offset += self.pending + 1
            self._pieces, self.pending, self._is_within = [], 0, False
            if is_whole:
                yield line
            start = end
        self._add(data[start:])

    def _add(self, piece: bytes) -> None:
        was_too_long = self.pending > self._longest
        self.pending += len(piece)
        if self._is_within or was_too_long:
            return
        if self.pending > self._longest:
            self.skipped += 1
            self._pieces.clear()
        elif piece:
            self._pieces.append(piece)
