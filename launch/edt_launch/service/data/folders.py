"""Folders below the service's folder of data: nothing leads out of it, neither ".." nor a link."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

from edt_launch.service.errors import InvalidError, NotFoundError
from edt_launch.service.files.archives.plan import MAX_DEPTH

MAX_ENTRIES = 1000
"""Entries of a folder that are listed."""

MAX_READ = 100_000
"""Entries of a folder that are looked at."""

MAX_OFFERED = 20_000
"""Entries that are looked at for folders to choose from."""

DEEPEST = MAX_DEPTH + 3
"""Folders within each other: those of an archive, in users/OWNER/NAME."""

OWN = ".edt-"
"""What the names of the service's own files in the folder of data begin with; they are not shown."""

_OPENING = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class File(NamedTuple):
    """A file in a folder: its name, its size in bytes, and when it was changed last."""

    name: str
    size: int
    time: float


@dataclass(frozen=True)
class Listing:
    """What is in a folder: names of folders, and files, in order of names; whether that is all."""

    path: str
    folders: tuple[str, ...]
    files: tuple[File, ...]
    complete: bool


def listing(root: Path, path: str) -> Listing:
    """What is in a folder below `root`; `path` is its place there, and empty for `root` itself.

    Links and special files are left out.

    Raises:
        InvalidError: it is no folder there, or cannot be read.
    """
    folders: list[str] = []
    files: list[str] = []
    with opened(root, path) as descriptor, os.scandir(descriptor) as found:
        entries = list(islice(found, MAX_READ + 1))
        for entry in entries[:MAX_READ]:
            if not _is_shown(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            elif entry.is_file(follow_symlinks=False):
                files.append(entry.name)
        listed = [_file(descriptor, name) for name in sorted(files)[:MAX_ENTRIES]]
    complete = max(len(folders), len(files)) <= MAX_ENTRIES and len(entries) <= MAX_READ
    shown = tuple(one for one in listed if one is not None)
    return Listing(normal(path), tuple(sorted(folders)[:MAX_ENTRIES]), shown, complete)


def _file(folder: int, name: str) -> File | None:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:  # gone meanwhile
        return None
    return File(name, status.st_size, status.st_mtime)


def _is_shown(name: str) -> bool:
    return name.isprintable() and not name.startswith(OWN)


def folders(root: Path, most: int) -> list[str]:
    """The first `most` folders below `root`, two deep, in order, among `MAX_OFFERED` entries.

    What cannot be read is left out.
    """
    found: list[str] = []
    outer, left = _folders_in(root, "", MAX_OFFERED)
    for name in outer[:most]:
        inner, left = _folders_in(root, name, left)
        found += [name, *(f"{name}/{one}" for one in inner)]
    return found[:most]


def _folders_in(root: Path, path: str, most: int) -> tuple[list[str], int]:
    """The folders among `most` entries of a folder, and how many entries are left of these."""
    try:
        with opened(root, path) as descriptor, os.scandir(descriptor) as found:
            entries = list(islice(found, most))
            names = [one.name for one in entries if _is_shown(one.name) and one.is_dir(follow_symlinks=False)]
            return sorted(names), most - len(entries)
    except InvalidError:
        return [], most


def open_file(root: Path, path: str) -> BinaryIO:
    """Open a file below `root`.

    Raises:
        InvalidError: its folder is none there.
        NotFoundError: it is no file.
    """
    above, _, name = normal(path).rpartition("/")
    with opened(root, above) as descriptor:
        try:
            number = os.open(
                name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=descriptor
            )
        except OSError as error:
            raise no_file(path, error.strerror) from None
    if not stat.S_ISREG(os.fstat(number).st_mode) or name.startswith(OWN):
        os.close(number)
        raise no_file(path, "it is something else")
    return os.fdopen(number, "rb")


def no_file(path: str, reason: str | None) -> NotFoundError:
    """The error about something that is no file, or cannot be read as one."""
    return NotFoundError(
        f"{path[:200]!r} is no file in the data folder: {reason}", "GET /api/v1/data lists what there is"
    )


def folder(root: Path, path: str) -> Path:
    """The folder below `root`; raises like `listing`."""
    with opened(root, path):
        return root / normal(path)


def normal(path: str) -> str:
    """A path below the folder of data, without slashes that say nothing."""
    return "/".join(part for part in path.split("/") if part not in ("", "."))


@contextmanager
def opened(root: Path, path: str) -> Iterator[int]:
    """A descriptor of a folder below `root`; raises like `listing`."""
    parts = normal(path).split("/") if normal(path) else []
    is_own = any(part.startswith(OWN) for part in parts)
    if ".." in parts or "\0" in path or len(parts) > DEEPEST or is_own:
        raise InvalidError(
            f"source: {path[:200]!r} is no folder below the folder of data", "give a path in it, without '..'"
        )
    descriptor = _open(os.fspath(root), None, "the folder of data", _OPENING & ~os.O_NOFOLLOW)
    try:
        for part in parts:
            inner = _open(part, descriptor, repr(path[:200]), _OPENING)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _open(name: str, within: int | None, told: str, flags: int) -> int:
    try:
        return os.open(name, flags, dir_fd=within)
    except OSError as error:
        raise InvalidError(
            f"source: {told} cannot be read: {error.strerror}",
            "GET /api/v1/data lists what there is; links are not followed",
        ) from None
