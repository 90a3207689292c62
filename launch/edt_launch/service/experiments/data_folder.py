"""Folders below the service's folder of data: nothing leads out of it, neither ".." nor a link."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from edt_launch.service.errors import InvalidError

MAX_ENTRIES = 1000
"""Entries of a folder that are listed."""

MAX_READ = 100_000
"""Entries of a folder that are looked at."""

MAX_OFFERED = 20_000
"""Entries that are looked at for folders to choose from."""

DEEPEST = 64
"""Folders within each other."""

_OPENING = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class Listing:
    """What is in a folder: names of folders and of files, in order; whether that is all."""

    path: str
    folders: tuple[str, ...]
    files: tuple[str, ...]
    complete: bool


def listing(root: Path, path: str) -> Listing:
    """What is in a folder below `root`; `path` is its place there, and empty for `root` itself.

    Links and special files are left out.

    Raises:
        InvalidError: it is no folder there, or cannot be read.
    """
    folders: list[str] = []
    files: list[str] = []
    with _opened(root, path) as descriptor, os.scandir(descriptor) as found:
        entries = list(islice(found, MAX_READ + 1))
        for entry in entries[:MAX_READ]:
            if not entry.name.isprintable():
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            elif entry.is_file(follow_symlinks=False):
                files.append(entry.name)
    complete = max(len(folders), len(files)) <= MAX_ENTRIES and len(entries) <= MAX_READ
    return Listing(
        normal(path), tuple(sorted(folders)[:MAX_ENTRIES]), tuple(sorted(files)[:MAX_ENTRIES]), complete
    )


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
        with _opened(root, path) as descriptor, os.scandir(descriptor) as found:
            entries = list(islice(found, most))
            names = [
                one.name for one in entries if one.name.isprintable() and one.is_dir(follow_symlinks=False)
            ]
            return sorted(names), most - len(entries)
    except InvalidError:
        return [], most


def folder(root: Path, path: str) -> Path:
    """The folder below `root`; raises like `listing`."""
    with _opened(root, path):
        return root / normal(path)


def normal(path: str) -> str:
    """A path below the folder of data, without slashes that say nothing."""
    return "/".join(part for part in path.split("/") if part not in ("", "."))


@contextmanager
def _opened(root: Path, path: str) -> Iterator[int]:
    parts = normal(path).split("/") if normal(path) else []
    if ".." in parts or "\0" in path or len(parts) > DEEPEST:
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
