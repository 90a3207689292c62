"""Reading tar and tar.gz, as a stream, with bounded memory."""

import contextlib
import gzip
import io
import tarfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, BinaryIO, cast

from edt_launch.service.archive_entry import Entry, Limits, Source, too_large
from edt_launch.service.errors import ArchiveError

MAX_HEADER = 2**20
"""Bytes that are read at once; only a header made to fill the memory is longer."""

BROKEN = "pack it again, with `tar -czf code.tar.gz FOLDER` for instance"


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Around reading entries and their content: errors of the libraries become `ArchiveError`."""
    try:
        yield
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, UnicodeError) as error:
        raise ArchiveError(f"the archive is no whole tar or tar.gz: {error}", BROKEN) from None
    except (RecursionError, ValueError, OverflowError):  # headers of headers, sizes that are no numbers
        raise ArchiveError("the archive's headers make no sense", BROKEN) from None


def entries(file: BinaryIO, limits: Limits) -> Iterator[Entry]:
    """What is in a tar or tar.gz; each entry is to be read before the next one.

    Raises:
        ArchiveError: it is broken, or neither of them.
        TooLargeError: its content, headers included, exceeds what `limits` allow.
    """
    is_gzip = file.read(2) == b"\x1f\x8b"
    file.seek(0)
    content = cast("BinaryIO", gzip.GzipFile(fileobj=file, mode="rb")) if is_gzip else file
    # Each entry has a header of 512 bytes and as much of padding; long names take a few more blocks.
    stream = _Stream(content, limits.size + 8192 * (limits.count + 8), limits)
    with tarfile.open(fileobj=cast("BinaryIO", stream), mode="r:", errorlevel=2) as tar:
        while (member := tar.next()) is not None:
            cast("Any", tar).members.clear()  # it would keep all of them
            yield _entry(tar, member)
    stream.check_end()


def _entry(tar: tarfile.TarFile, member: tarfile.TarInfo) -> Entry:
    if member.isreg():
        content = partial(tar.extractfile, member)
        return Entry(
            member.name, "file", member.mode, member.size, open=cast("Callable[[], Source]", content)
        )
    kinds = {tarfile.DIRTYPE: "folder", tarfile.SYMTYPE: "link", tarfile.LNKTYPE: "same"}
    kind = kinds.get(member.type, "a device, a pipe or something else that is no file")
    return Entry(member.name, kind, target=member.linkname)


class _Stream:
    """A file that is read once, forwards: seeking skips, and at most one block back.

    `tarfile` reads a long header in one go and keeps it: such a read is refused.
    """

    def __init__(self, file: BinaryIO, most: int, limits: Limits) -> None:
        self._file = file
        self._most = most
        self._limits = limits
        self._at = 0
        self._last = b""
        """What was read last, which ends where the file is."""
        self._back = 0
        """How many bytes of it are to be read again."""

    def read(self, size: int = -1, /) -> bytes:
        if size < 0 or size > MAX_HEADER:
            raise ArchiveError("the archive has a header that is too long", BROKEN)
        again = self._last[len(self._last) - self._back :][:size] if self._back else b""
        self._back -= len(again)
        new = self._file.read(size - len(again)) if size > len(again) else b""
        self._at += len(new)
        if self._at > self._most:
            raise too_large(self._limits)
        data = again + new
        if new:
            self._last = (self._last + new)[-tarfile.BLOCKSIZE :]
        return data

    def tell(self) -> int:
        return self._at - self._back

    def seek(self, position: int, whence: int = io.SEEK_SET, /) -> int:
        if whence != io.SEEK_SET or position < self._at - len(self._last):
            raise ArchiveError("the archive's headers make no sense", BROKEN)
        if position <= self._at:
            self._back = self._at - position
            return position
        self._back = 0
        while self._at < position and self.read(min(position - self._at, MAX_HEADER)):
            pass
        return self._at

    def check_end(self) -> None:
        """See whether the archive ends as it should: `tarfile` takes broken headers for the end."""
        if self._last.strip(b"\0") or not self._last:
            raise ArchiveError("the archive is cut short or broken", BROKEN)
        while self.read(MAX_HEADER):  # gzip's checksum comes last
            pass
