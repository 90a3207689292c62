"""A zip as a stream, with memory for one block; where that is wanted, of a size known before its first byte.

Nothing is compressed: models hardly get smaller by that. Every entry is written in the form for files of any
size (zip64), with its checksum behind it. So all lengths follow from names and sizes alone. Where they were
announced, a file that does not have its size any more ends the stream early, and with it the download: half a
model that looks like a whole one is worse than none.
"""

import contextlib
import io
import os
import stat
import time
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from edt_launch.service.files.archives.reading import ByPath, Reader

BLOCK = 2**16  # bytes that are read at a time

# What `zipfile` writes besides names and contents. (APPNOTE.TXT of PKWARE, 4.3.6 to 4.3.16.)
_FILE, _ENTRY = 30 + 20 + 24, 46
"""Of each file: its header, sizes and checksum; its entry in the directory."""
_END, _END_64 = 22, 56 + 20
_REGULAR = (stat.S_IFREG | 0o644) << 16


class ChangedError(Exception):
    """A file has changed since the archive's size was told."""


class Member(NamedTuple):
    """A file to be packed: its name in the archive, encoded, where it is, its size and time of change."""

    name: bytes
    path: Path
    size: int
    changed: float


def members(files: Iterable[tuple[str, Path]], reader: Reader | None = None) -> list[Member]:
    """Those of the files, each with its name in the archive, that are regular files now and can be read."""
    packable, reader = [], reader or ByPath()
    for name, path in files:
        try:
            status = reader.status(path)
        except OSError:  # gone meanwhile, as old checkpoints go
            continue
        if stat.S_ISREG(status.st_mode) and os.access(path, os.R_OK):
            packable.append(Member(name.encode(errors="replace"), path, status.st_size, status.st_mtime))
    return packable


def size_of(packed: Iterable[Member]) -> int:
    """The size of the archive of these files, in bytes."""
    count = at = directory = 0
    for member in packed:
        numbers = 2 * (member.size > zipfile.ZIP64_LIMIT) + (at > zipfile.ZIP64_LIMIT)
        directory += _ENTRY + len(member.name) + (4 + 8 * numbers if numbers else 0)
        at += _FILE + len(member.name) + member.size
        count += 1
    is_large = count > zipfile.ZIP_FILECOUNT_LIMIT or max(at, directory) > zipfile.ZIP64_LIMIT
    return at + directory + _END + (_END_64 if is_large else 0)


def pack(
    packed: Iterable[Member], reader: Reader | None = None, *, is_announced: bool = True
) -> Iterator[bytes]:
    """The archive of these files, which `reader` reads.

    Raises:
        ChangedError: one is neither as it was, nor another of its size. Unless the size of the archive was
            announced, what grows meanwhile is cut, what shrinks is shorter, and what is gone is empty.
    """
    written, reader = _Written(), reader or ByPath()
    with zipfile.ZipFile(written, "w") as archive:
        for member in packed:
            info = zipfile.ZipInfo(member.name.decode(), _date(member.changed))
            info.external_attr = _REGULAR
            with archive.open(info, "w", force_zip64=True) as file:
                for block in (_content if is_announced else _present)(member, reader):
                    file.write(block)
                    yield written.taken()
    yield written.taken()


class _Written(io.RawIOBase):
    """A file that `zipfile` writes, and that is taken away as it comes."""

    def __init__(self) -> None:
        self._data = bytearray()

    def write(self, data: Any, /) -> int:
        self._data += data
        return len(data)

    def taken(self) -> bytes:
        data = bytes(self._data)
        self._data.clear()
        return data


def _present(member: Member, reader: Reader) -> Iterator[bytes]:
    """What is there by now, as much as there was."""
    left = member.size
    with contextlib.suppress(OSError), reader.open(member.path) as file:
        while left and (block := file.read(min(BLOCK, left))):
            left -= len(block)
            yield block


def _content(member: Member, reader: Reader) -> Iterator[bytes]:
    try:
        with reader.open(member.path) as file:
            before, left = os.fstat(file.fileno()), member.size
            if before.st_size != member.size:
                raise ChangedError(f"{member.path} has changed")
            while left and (block := file.read(min(BLOCK, left))):
                left -= len(block)
                yield block
            if left or os.fstat(file.fileno()).st_mtime_ns != before.st_mtime_ns:
                raise ChangedError(f"{member.path} changes while it is sent")
    except OSError as error:
        raise ChangedError(f"{member.path} cannot be read any more: {error.strerror}") from None


def _date(changed: float) -> tuple[int, int, int, int, int, int]:
    """A time that zips can have: they begin in 1980 and end in 2107."""
    return time.gmtime(max(315532800.0, min(changed, 4354819198.0)))[:6]
