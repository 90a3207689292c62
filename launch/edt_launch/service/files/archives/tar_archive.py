"""Reading tar and tar.gz, as a stream, with bounded memory."""

import contextlib
import gzip
import io
import tarfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, BinaryIO, cast

from edt_launch.service.errors import ArchiveError
from edt_launch.service.files.archives.entry import ArchiveLimits, Entry, Source, too_large

MAX_HEADER = 2**20
"""Bytes of the headers of one entry, which are kept; only those made to fill the memory are longer."""

MEAN_HEADER = 2**11
"""Bytes of the headers of an entry on average, when there are as many entries as there may be."""

READ = 2**20
"""Bytes that are skipped at a time."""

BROKEN = "pack the folder again, as a zip for instance"


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Around reading entries and their content: errors of the libraries become `ArchiveError`."""
    try:
        yield
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, UnicodeError) as error:
        raise ArchiveError(f"this file is not a valid zip, tar or tar.gz archive: {error}", BROKEN) from None
    except (RecursionError, ValueError, OverflowError, IndexError):
        # Headers of headers, sizes that are no numbers, sparse files whose map is cut short.
        raise ArchiveError("the archive's headers make no sense", BROKEN) from None


def entries(file: BinaryIO, limits: ArchiveLimits) -> Iterator[Entry]:
    """What is in a tar or tar.gz; each entry is to be read before the next one.

    Raises:
        ArchiveError: it is broken, or neither of them.
        TooLargeError: its content, headers included, exceeds what `limits` allow.
    """
    is_gzip = file.read(2) == b"\x1f\x8b"
    file.seek(0)
    content = cast("BinaryIO", gzip.GzipFile(fileobj=file, mode="rb")) if is_gzip else file
    stream = _Stream(content, limits)
    with tarfile.open(fileobj=cast("BinaryIO", stream), mode="r:", errorlevel=2) as tar:
        while (member := _next(tar, stream)) is not None:
            cast("Any", tar).members.clear()  # it would keep all of them
            yield _entry(tar, member)
    stream.check_end()


def _next(tar: tarfile.TarFile, stream: "_Stream") -> tarfile.TarInfo | None:
    with stream.header():
        return tar.next()


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

    `tarfile` keeps what it finds in headers, and takes long for some: what it reads of them is bounded.
    """

    def __init__(self, file: BinaryIO, limits: ArchiveLimits) -> None:
        self._file = file
        self._headers = MAX_HEADER + MEAN_HEADER * limits.count
        """Bytes that all headers may still have."""
        self._header: int | None = MAX_HEADER
        """Bytes that those of the present entry may still have; None while content is read."""
        # Content is padded to whole blocks.
        self._most = limits.size + self._headers + 2 * tarfile.BLOCKSIZE * limits.count
        self._limits = limits
        self._at = 0
        self._last = b""
        """What was read last, which ends where the file is."""
        self._back = 0
        """How many bytes of it are to be read again."""

    @contextlib.contextmanager
    def header(self) -> Iterator[None]:
        """In the context the headers of an entry are read."""
        self._header = MAX_HEADER
        try:
            yield
        finally:
            self._header = None

    def read(self, size: int, /) -> bytes:
        if size < 0:
            raise ArchiveError("the archive's headers make no sense", BROKEN)
        if self._header is not None:
            self._header -= size
            self._headers -= size
            if self._header < 0 or self._headers < 0:
                raise ArchiveError(
                    f"the archive has more than {MAX_HEADER:,} bytes of headers for one entry, or "
                    f"{MEAN_HEADER:,} on average",
                    BROKEN,
                )
        return self._read(size)

    def _read(self, size: int) -> bytes:
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
        while self._at < position and self._read(min(position - self._at, READ)):
            pass
        return self._at

    def check_end(self) -> None:
        """See whether the archive ends as it should: `tarfile` takes broken headers for the end."""
        if self._last.strip(b"\0") or not self._last:
            raise ArchiveError("the archive is cut short or broken", BROKEN)
        while self._read(READ):  # gzip's checksum comes last
            pass
