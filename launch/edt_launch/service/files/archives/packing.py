"""Packing files into a tar.gz, as a stream, with memory for one block."""

import contextlib
import stat
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from edt_launch.core.files.walking import walk
from edt_launch.service.files.archives.reading import ByPath, Reader

BLOCK = 2**16
"""Bytes that are read at a time."""

_END = b"\0" * tarfile.RECORDSIZE
_GZIP = 16 + zlib.MAX_WBITS
_LEVEL = 1
"""Models hardly get smaller, logs do at once."""


class Member(NamedTuple):
    """A file or folder, and its name in an archive."""

    name: str
    path: Path


def members(name: str, folder: Path) -> Iterator[Member]:
    """A folder and all that is in it, under a name; nothing if it is not there."""
    if folder.is_dir() and not folder.is_symlink():
        yield Member(name, folder)
        for path in walk(folder):
            yield Member(f"{name}/{path.relative_to(folder).as_posix()}", path)


def pack(packed: Iterable[Member], reader: Reader | None = None) -> Iterator[bytes]:
    """A tar.gz of files and folders, which `reader` reads.

    Links stay links, special files are left out. A file that grows meanwhile is cut, one that shrinks is
    filled up.
    """
    compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    for data in _tar(packed, reader or ByPath()):
        if block := compressor.compress(data):
            yield block
    yield compressor.flush()


def size_of(packed: Iterable[Member]) -> int:
    """The bytes of all files that `pack` would pack, as large as they say they are."""
    total = 0
    for member in packed:
        with contextlib.suppress(OSError):  # gone meanwhile
            status = member.path.lstat()
            total += status.st_size if stat.S_ISREG(status.st_mode) else 0
    return total


def _tar(packed: Iterable[Member], reader: Reader) -> Iterator[bytes]:
    for name, path in packed:
        yield from _member(path, name, reader)
    yield _END


def _member(path: Path, name: str, reader: Reader) -> Iterator[bytes]:
    try:
        status = reader.status(path)
        info = tarfile.TarInfo(name)
        info.mode, info.mtime = stat.S_IMODE(status.st_mode) & 0o777, status.st_mtime
        if stat.S_ISLNK(status.st_mode):
            info.type, info.linkname = tarfile.SYMTYPE, reader.target(path)
        elif stat.S_ISDIR(status.st_mode):
            info.type = tarfile.DIRTYPE
        elif stat.S_ISREG(status.st_mode):
            info.size = status.st_size
        else:
            return
        file = reader.open(path) if info.isreg() else None
    except OSError:  # gone meanwhile, as old checkpoints go
        return
    yield info.tobuf(tarfile.PAX_FORMAT, errors="surrogateescape")
    if file is None:
        return
    with file:
        left = info.size
        while left:
            block = file.read(min(BLOCK, left)) or b"\0" * min(BLOCK, left)
            left -= len(block)
            yield block
    yield b"\0" * (-info.size % tarfile.BLOCKSIZE)
