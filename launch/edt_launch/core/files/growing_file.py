"""Reading files that others append to, whatever becomes of them meanwhile.

Such a file may come later, end in half a line, lose that half to a program that goes on with it, be emptied,
or be replaced. A look at it takes bounded time and memory.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self

from edt_launch.core.files.lines import MAX_LINE_BYTES, LineSplitter
from edt_launch.core.files.plain_files import NoFileError, open_file

BLOCK_BYTES = 2**16
"""Bytes that are read at a time."""

LOOK_BYTES = 2**18
"""Bytes that one look for lines reads, or more if a line may be longer."""

REACH = 2**26
"""Bytes before the end of a file in which something is looked for; what is further away is not found."""

_ABSENT = (FileNotFoundError, NotADirectoryError, NoFileError)


class Line(NamedTuple):
    """A whole line without its end, and the offset of the line after it."""

    text: bytes
    end: int


class GrowingFile:
    """Reads a file as it grows, each time from where the last look ended: either lines, or bytes.

    The file stays open between two looks for bytes, so that nothing is lost when it is replaced: close it.

    A file that takes the place of the one before, or is shorter than what was read, is read from its
    beginning. What is no regular file counts as absent, as does a missing file.

    Args:
        path: the file.
        start: where to begin, an offset or what finds it in the open file; of lines, those that begin there
            or later are read.
        is_known: whether the file was read up to `start` before, by another process for instance, so that
            a shorter one is another file.
        reach: bytes that may be unread; of a file that has more, those before are skipped. None for all.
        longest: bytes of a line; longer ones are skipped.

    Attributes:
        offset: the end of what was read; of lines, that of the last whole one.
        size: bytes that the file had at the last look.
        is_another: whether the last look found another file than the one before.
        is_behind: whether the last look left bytes unread, besides the beginning of a line.
        skipped: bytes that were out of `reach`.
        skipped_lines: lines that were too long.
    """

    def __init__(
        self,
        path: Path,
        start: int | Callable[[BinaryIO], int] = 0,
        *,
        is_known: bool = False,
        reach: int | None = None,
        longest: int = MAX_LINE_BYTES,
    ) -> None:
        self.path = path
        self.size = self.skipped = self.skipped_lines = 0
        self.is_another = self.is_behind = False
        self.offset = 0 if callable(start) else start
        self._start = start if callable(start) else None
        self._at = self.offset
        """The offset of the next byte to read: within a line that is too long, it is beyond `offset`."""
        self._is_within = False
        """Whether the line at `offset` is passed over."""
        self._is_read = is_known
        self._reach = reach
        self._longest = longest
        self._file: BinaryIO | None = None
        self._identity: tuple[int, int] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; the next look opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def has_changed(self) -> bool:
        """Whether a look may find more than the last one."""
        if self.is_behind or (self._file is not None and _size(self._file) != self.size):
            return True
        try:
            status = os.stat(self.path, follow_symlinks=False)
        except OSError:  # it is not there yet, or is being replaced
            return False
        return (status.st_dev, status.st_ino) != self._identity or status.st_size != self.size

    def read(self, most: int = BLOCK_BYTES) -> bytes:
        """The next bytes; empty if there are none now.

        Raises:
            OSError: the file cannot be read.
        """
        file = self._look()
        data = b"" if file is None else os.pread(file.fileno(), most, self.offset)
        self.offset += len(data)
        self._is_read |= bool(data)
        self.is_behind = file is not None and self.offset < self.size
        return data

    def lines(self, most: int | None = None, end: int | None = None) -> list[Line]:
        """The lines that have been completed, from the next `most` bytes, and from those before `end`.

        `most` exceeds the bytes of a line.

        Raises:
            OSError: the file cannot be read.
        """
        with self:  # whoever follows many files has none of them open between two looks
            return self._lines(most or max(LOOK_BYTES, self._longest + 1), end)

    def looks(self) -> Iterator[list[Line]]:
        """The lines of one look after the other, up to the end that the file has now."""
        found, end = self.lines(), self.size
        yield found
        while self.is_behind:
            yield self.lines(end=end)

    def _lines(self, most: int, end: int | None) -> list[Line]:
        file = self._look()
        if file is None:
            return []
        if self.offset and not self._is_within and not self._follows_a_line(file):
            if self._is_read:
                self._begin_again()
            else:
                self._is_within = True
        end = self.size if end is None else min(end, self.size)
        if self._reach is not None and end - self._at > self._reach:
            self.skipped += end - self._reach - self._at
            self._at, self._is_within = end - self._reach, True
        data = os.pread(file.fileno(), max(0, min(most, end - self._at)), self._at)
        self.is_behind = self._at + len(data) < end
        return self._split(data)

    def _split(self, data: bytes) -> list[Line]:
        splitter = LineSplitter(self._at, self._longest, is_within=self._is_within)
        found = [Line(text, splitter.offset) for text in splitter.feed(data)]
        self.skipped_lines += splitter.skipped
        if splitter.offset > self._at:
            self.offset = self._at = splitter.offset
            self._is_read, self._is_within = True, False
        if self._is_within or splitter.pending > self._longest:
            self._at, self._is_within = self._at + splitter.pending, True
        return found

    def _look(self) -> BinaryIO | None:
        """The file that is there now; `offset` is in it."""
        self.is_another = False
        if self._file is not None and self._is_replaced(self._file):
            self.close()
        if self._file is None:
            self._open()
        if self._file is None:
            self.is_behind = False
            return None
        self.size = _size(self._file)
        if self._is_read and self.size < self.offset:
            self._begin_again()
        elif self.size < self._at:  # what was cut off is a part of a line that was too long
            self._at, self._is_within = self.offset, False
        return self._file

    def _open(self) -> None:
        try:
            self._file = open_file(self.path, buffering=0)
        except _ABSENT:
            return
        status = os.fstat(self._file.fileno())
        identity = status.st_dev, status.st_ino
        if self._identity not in (None, identity):
            self._begin_again()
        elif self._start is not None:
            self.offset = self._at = self._start(self._file)
        self._identity, self._start = identity, None

    def _is_replaced(self, file: BinaryIO) -> bool:
        """Whether another file is at the path, and this one was read to its end."""
        if self.is_behind or _size(file) != self.size:
            return False
        try:
            status = os.stat(self.path, follow_symlinks=False)
        except OSError:  # it is removed or being replaced
            return False
        return (status.st_dev, status.st_ino) != self._identity

    def _follows_a_line(self, file: BinaryIO) -> bool:
        return os.pread(file.fileno(), 1, self.offset - 1) == b"\n"

    def _begin_again(self) -> None:
        self.is_another = True
        self.offset = self._at = 0
        self._is_read = self._is_within = False


def _size(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


def recent_lines(path: Path) -> Iterator[bytes]:
    """The whole lines in the last `REACH` bytes of a file, without those that are too long.

    Raises:
        OSError: the file cannot be read; a missing file has no lines.
    """
    for found in GrowingFile(path, reach=REACH).looks():
        yield from (line.text for line in found)


def start_of_last_lines(file: BinaryIO, lines: int) -> int:
    """Where the last `lines` lines begin, `REACH` bytes before the end at most; one without an end counts."""
    end = file.seek(0, os.SEEK_END)
    first = max(0, end - REACH)
    at, missing = end, lines
    while at > first and missing >= 0:
        size = min(BLOCK_BYTES, at - first)
        at -= size
        file.seek(at)
        block = file.read(size)
        if at + size == end and block.endswith(b"\n"):
            missing += 1  # the end of the last line begins none
        found = block.count(b"\n")
        if found < missing:
            missing -= found
            continue
        position = len(block)
        for _ in range(missing):
            position = block.rindex(b"\n", 0, position)
        return at + position + 1 if missing else end
    return first


def last_lines(path: Path, lines: int, most: int) -> tuple[int, list[bytes]]:
    """The last lines of a file, without ends, and where they begin; of long ones, the last bytes' whole ones.

    Raises:
        FileNotFoundError, NoFileError: it is not there, or no file.
    """
    with open_file(path, buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        start = start_of_last_lines(file, lines)
        is_cut = end - start > most
        file.seek(end - most if is_cut else start)
        content = file.read(most)
    if is_cut:
        _, _, rest = content.partition(b"\n")
        start, content = end - len(rest), rest
    return start, content.removesuffix(b"\n").split(b"\n") if content else []
