"""A zip whose size is known before its first byte is sent, as a stream, with memory for one block.

Nothing is compressed: models hardly get smaller by that. Every entry is written in the form for files of any
size (zip64), with its checksum behind it. So all lengths follow from names and sizes alone. A file that does
not have the announced size any more ends the stream early, and with it the download: half a model that looks
like a whole one is worse than none. (APPNOTE.TXT of PKWARE, 4.3.6 to 4.3.16.)
"""

import os
import stat
import struct
import time
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from edt_launch.service.plain_files import open_file

BLOCK = 2**16
"""Bytes that are read at a time."""

_LOCAL = struct.Struct("<4s5H3L2H")
_LOCAL_64 = struct.Struct("<2H2Q")
_DESCRIPTOR = struct.Struct("<4sL2Q")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_CENTRAL_64 = struct.Struct("<2H3Q")
_END_64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR_64 = struct.Struct("<4sLQL")
_END = struct.Struct("<4s4H2LH")

_VERSION = 45
_FLAGS = 0x0008 | 0x0800
"""The checksum comes later; names are UTF-8."""
_ALL = 0xFFFFFFFF
_REGULAR = (stat.S_IFREG | 0o644) << 16


class ChangedError(Exception):
    """A file has changed since the archive's size was told."""


@dataclass(frozen=True)
class Member:
    """A file to be packed: its name in the archive, encoded, where it is, its size and time of change."""

    name: bytes
    path: Path
    size: int
    changed: float


def members(files: Iterable[tuple[str, Path]]) -> list[Member]:
    """Those of the files, each with its name in the archive, that are regular files now and can be read."""
    found = []
    for name, path in files:
        try:
            status = path.lstat()
        except OSError:  # gone meanwhile, as old checkpoints go
            continue
        if stat.S_ISREG(status.st_mode) and os.access(path, os.R_OK):
            found.append(Member(name.encode(errors="replace"), path, status.st_size, status.st_mtime))
    return found


def size_of(packed: Iterable[Member]) -> int:
    """The size of the archive of these files, in bytes."""
    each = _LOCAL.size + _LOCAL_64.size + _DESCRIPTOR.size + _CENTRAL.size + _CENTRAL_64.size
    ends = _END_64.size + _LOCATOR_64.size + _END.size
    return sum(each + 2 * len(member.name) + member.size for member in packed) + ends


def pack(packed: Iterable[Member]) -> Iterator[bytes]:
    """The archive of these files.

    Raises:
        ChangedError: one is not what it was; one of the same size that was put in its place is as good.
    """
    at, central = 0, []
    for member in packed:
        date, day = _date(member.changed)
        extra = _LOCAL_64.pack(1, 16, 0, 0)
        fields = (_VERSION, _FLAGS, 0, date, day, 0, _ALL, _ALL, len(member.name), len(extra))
        yield _LOCAL.pack(b"PK\3\4", *fields) + member.name + extra
        checksum = 0
        for block in _content(member):
            checksum = zlib.crc32(block, checksum)
            yield block
        yield _DESCRIPTOR.pack(b"PK\7\10", checksum, member.size, member.size)
        central.append(_entry(member, at, checksum))
        at += _LOCAL.size + len(extra) + len(member.name) + member.size + _DESCRIPTOR.size
    yield b"".join(central)
    yield _ends(len(central), sum(map(len, central)), at)


def _entry(member: Member, at: int, checksum: int) -> bytes:
    date, day = _date(member.changed)
    extra = _CENTRAL_64.pack(1, 24, member.size, member.size, at)
    versions = (3 << 8 | _VERSION, _VERSION, _FLAGS, 0, date, day)
    lengths = (len(member.name), len(extra), 0, 0, 0)
    head = _CENTRAL.pack(b"PK\1\2", *versions, checksum, _ALL, _ALL, *lengths, _REGULAR, _ALL)
    return head + member.name + extra


def _ends(count: int, size: int, at: int) -> bytes:
    return (
        _END_64.pack(b"PK\6\6", _END_64.size - 12, _VERSION, _VERSION, 0, 0, count, count, size, at)
        + _LOCATOR_64.pack(b"PK\6\7", 0, at + size, 1)
        + _END.pack(b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, _ALL, _ALL, 0)
    )


def _content(member: Member) -> Iterator[bytes]:
    try:
        with open_file(member.path) as file:
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


def _date(changed: float) -> tuple[int, int]:
    """Time and day in MS-DOS's form, which begins in 1980 and ends in 2107."""
    year, month, day, hour, minute, second = time.gmtime(max(315532800.0, min(changed, 4354819198.0)))[:6]
    return hour << 11 | minute << 5 | second // 2, (year - 1980) << 9 | month << 5 | day
