"""Reading zip, with bounded memory."""

import contextlib
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import BinaryIO, cast

from edt_launch.service.errors import ArchiveError, TooLargeError
from edt_launch.service.files.archives.entry import MAX_PATH, ArchiveLimits, Entry, Source

_END = struct.Struct("<4s4H2LH")
"""The record at the end: how many entries, and how long their directory is."""
_END_MARK = b"PK\x05\x06"
_LOCATOR = struct.Struct("<4sLQL")
"""Before it in a zip64: where the record with the same in 64 bits is."""
_LOCATOR_MARK = b"PK\x06\x07"
_END64 = struct.Struct("<4sQ2H2L4Q")
_END64_MARK = b"PK\x06\x06"
_MAX_COMMENT = 2**16
_ENTRY = 512
"""Bytes that an entry of the directory may take on average."""

TAR = "send a tar.gz"
BROKEN = "pack it again, or send a tar.gz"


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Around reading entries and their content: errors of the libraries become `ArchiveError`."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, UnicodeError, NotImplementedError) as error:
        raise ArchiveError(f"the archive is no whole zip: {error}", BROKEN) from None
    except (ValueError, OverflowError, struct.error):
        raise ArchiveError("the archive's headers make no sense", BROKEN) from None


def entries(file: BinaryIO, limits: ArchiveLimits) -> Iterator[Entry]:
    """What is in a zip.

    Raises:
        ArchiveError: it is broken, or uses what we do not read.
        TooLargeError: it has too many entries.
    """
    _check_directory(file, limits)
    file.seek(0)
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            yield _entry(archive, info)


def _check_directory(file: BinaryIO, limits: ArchiveLimits) -> None:
    """Look at the directory's size before `zipfile` reads all of it."""
    size = file.seek(0, 2)
    start = file.seek(max(0, size - _MAX_COMMENT - 2 * _END.size - _LOCATOR.size - _END64.size))
    tail = file.read()
    at = tail.rfind(_END_MARK)
    if at < 0 or len(tail) - at < _END.size:
        raise ArchiveError("the archive is no whole zip: its end is missing", BROKEN)
    _, _, _, _, count, directory, _, _ = _END.unpack_from(tail, at)
    locator = at - _LOCATOR.size
    if locator >= 0 and tail.startswith(_LOCATOR_MARK, locator):
        count, directory = _zip64_counts(tail, locator, start)
    if count > limits.count:
        raise TooLargeError(
            f"the archive has {count:,} entries, more than {limits.count:,}", "leave some out"
        )
    if directory > _ENTRY * (limits.count + 8):
        raise ArchiveError("the archive's directory is longer than its entries need", BROKEN)


def _zip64_counts(tail: bytes, locator: int, start: int) -> tuple[int, int]:
    """How many entries a zip64 says that it has, and how long their directory is.

    The record has to be where both its place and its locator say: `zipfile` goes by the one or the other.
    """
    at = locator - _END64.size
    _, _, place, _ = _LOCATOR.unpack_from(tail, locator)
    if at < 0 or place != start + at or not tail.startswith(_END64_MARK, at):
        raise ArchiveError("the archive is no whole zip64: the record at its end is missing", BROKEN)
    *_, count, directory, _ = _END64.unpack_from(tail, at)
    return int(count), int(directory)


def _entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Entry:
    if info.flag_bits & 0x1:
        raise ArchiveError(f"{info.filename!r} is encrypted", "pack it without a password")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ArchiveError(f"{info.filename!r} is compressed in a rare way", TAR)
    mode = info.external_attr >> 16
    kind = stat.S_IFMT(mode)
    if info.is_dir() or kind == stat.S_IFDIR:
        return Entry(info.filename, "folder")
    if kind == stat.S_IFLNK:
        with archive.open(info) as content:
            target = content.read(MAX_PATH + 1)
        if len(target) > MAX_PATH:
            raise ArchiveError(f"{info.filename!r} is a link to something too long", BROKEN)
        return Entry(info.filename, "link", target=target.decode("utf-8", "surrogateescape"))
    if kind not in (0, stat.S_IFREG):
        return Entry(info.filename, "a device, a pipe or something else that is no file")
    return Entry(info.filename, "file", mode, info.file_size, open=lambda: cast("Source", archive.open(info)))
