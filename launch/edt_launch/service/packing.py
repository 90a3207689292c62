"""Packing folders into a tar.gz, as a stream, with memory for one block."""

import contextlib
import os
import stat
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from edt_launch.core.plain_files import open_file
from edt_launch.core.walking import walk

BLOCK = 2**16
"""Bytes that are read at a time."""

_END = b"\0" * tarfile.RECORDSIZE
_GZIP = 16 + zlib.MAX_WBITS
_LEVEL = 1
"""Models hardly get smaller, logs do at once."""


def pack(folders: Iterable[tuple[str, Path]]) -> Iterator[bytes]:
    """A tar.gz of folders, each under the name beside it; those that are not there are left out.

    Links stay links, special files are left out. A file that grows meanwhile is cut, one that shrinks is
    filled up.
    """
    compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    for data in _tar(folders):
        if packed := compressor.compress(data):
            yield packed
    yield compressor.flush()


def size_of(folders: Iterable[tuple[str, Path]]) -> int:
    """The bytes of all files that `pack` would pack, as large as they say they are."""
    total = 0
    for _, folder in folders:
        for path in walk(folder):
            with contextlib.suppress(OSError):  # gone meanwhile
                status = path.lstat()
                total += status.st_size if stat.S_ISREG(status.st_mode) else 0
    return total


def _tar(folders: Iterable[tuple[str, Path]]) -> Iterator[bytes]:
    for name, folder in folders:
        if folder.is_dir() and not folder.is_symlink():
            yield from _member(folder, name)
            for path in walk(folder):
                yield from _member(path, f"{name}/{path.relative_to(folder).as_posix()}")
    yield _END


def _member(path: Path, name: str) -> Iterator[bytes]:
    try:
        status = path.lstat()
        info = tarfile.TarInfo(name)
        info.mode, info.mtime = stat.S_IMODE(status.st_mode) & 0o777, status.st_mtime
        if stat.S_ISLNK(status.st_mode):
            info.type, info.linkname = tarfile.SYMTYPE, os.readlink(path)
        elif stat.S_ISDIR(status.st_mode):
            info.type = tarfile.DIRTYPE
        elif stat.S_ISREG(status.st_mode):
            info.size = status.st_size
        else:
            return
        file = open_file(path) if info.isreg() else None
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
