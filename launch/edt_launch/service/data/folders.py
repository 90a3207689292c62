"""Folders below the service's folder of data: nothing leads out of it, neither ".." nor a link."""

import contextlib
import errno
import os
import stat
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

from edt_launch.service.errors import InvalidError, NotFoundError, TooLargeError
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

PRIVATE = "not all accounts may read it (chmod o+rX lets them)"
"""Why something is not served that belongs to an account, when jobs run under accounts of their own."""

_UNPLAIN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories of control, formatting and surrogate characters, and of ends of lines."""

_LISTED = stat.S_IROTH | stat.S_IXOTH

_OPENING = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class File(NamedTuple):
    """A file in a folder: its name, its size in bytes, and when it was changed last."""

    name: str
    size: int
    time: float


class Found(NamedTuple):
    """A file, folder or link: its path below the data folder, and what it is."""

    path: str
    status: os.stat_result


@dataclass(frozen=True)
class Listing:
    """What is in a folder: names of folders, and files, in order of names; whether that is all."""

    path: str
    folders: tuple[str, ...]
    files: tuple[File, ...]
    complete: bool


def listing(root: Path, path: str, *, is_for_all: bool = False) -> Listing:
    """What is in a folder below `root`; `path` is its place there, and empty for `root` itself.

    Links and special files are left out. With `is_for_all`, so is what not all accounts may read, and such a
    folder is refused.

    Raises:
        InvalidError: it is no folder there, or cannot be read.
    """
    folders: list[str] = []
    files: list[str] = []
    with opened(root, path, is_for_all=is_for_all, is_read=True) as descriptor:
        with os.scandir(descriptor) as found:
            entries = list(islice(found, MAX_READ + 1))
        own = [entry for entry in entries[:MAX_READ] if not entry.name.startswith(OWN)]
        for entry in own:
            if not is_plain(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            elif entry.is_file(follow_symlinks=False):
                files.append(entry.name)
        is_whole = all(is_plain(entry.name) for entry in own)
        is_whole &= max(len(folders), len(files)) <= MAX_ENTRIES and len(entries) <= MAX_READ
        names = [*sorted(folders)[:MAX_ENTRIES], *sorted(files)[:MAX_ENTRIES]]
        listed = _readable(descriptor, names, is_for_all)
    return Listing(
        normal(path),
        tuple(name for name, status in listed if stat.S_ISDIR(status.st_mode)),
        tuple(File(name, one.st_size, one.st_mtime) for name, one in listed if stat.S_ISREG(one.st_mode)),
        complete=is_whole and len(listed) == len(names),
    )


def _readable(folder: int, names: list[str], is_for_all: bool) -> list[Found]:
    """Those of the entries that are still there and may be looked at; with `is_for_all`, by all accounts."""
    found = []
    for name in names:
        with contextlib.suppress(FileNotFoundError, PermissionError):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if not is_for_all or is_public(status):
                found.append(Found(name, status))
    return found


def is_plain(name: str) -> bool:
    """Whether a name is a line of text without control and formatting characters."""
    return not any(unicodedata.category(character) in _UNPLAIN for character in name)


def is_public(status: os.stat_result) -> bool:
    """Whether all accounts may read a file, list a folder and go through it; a link has no permissions."""
    needed = _LISTED if stat.S_ISDIR(status.st_mode) else stat.S_IROTH
    return stat.S_ISLNK(status.st_mode) or status.st_mode & needed == needed


def tree(root: Path, path: str, most: int, *, is_for_all: bool = False) -> tuple[list[Found], bool]:
    """What is below a folder, at most `most` files, folders and links, and whether that is all.

    What vanishes meanwhile or cannot be read is left out; with `is_for_all`, so is what not all accounts may
    read.

    Raises:
        InvalidError: it is no folder there, or cannot be read.
        TooLargeError: there is more in it.
    """
    found: list[Found] = []
    is_whole, count, pending = True, 0, [normal(path)]
    while pending:
        at = pending.pop()
        try:
            with opened(root, at, is_for_all=is_for_all, is_read=True) as descriptor:
                with os.scandir(descriptor) as scanned:
                    entries = sorted(islice(scanned, most + 1 - count), key=lambda entry: entry.name)
                count += len(entries)
                if count > most:
                    raise TooLargeError(
                        f"{path[:200] or 'the data folder'} has more than {most:,} files and folders",
                        "fetch parts of it",
                    )
                names = [one.name for one in entries if not one.name.startswith(OWN)]
                inside = [
                    Found(f"{at}/{name}" if at else name, status)
                    for name, status in _readable(descriptor, names, is_for_all)
                ]
        except (InvalidError, OSError):
            if at == normal(path):
                raise
            is_whole = False  # it cannot be read, is gone meanwhile, or a link by now
            continue
        is_whole &= len(inside) == len(names)
        found += inside
        pending += reversed([one.path for one in inside if stat.S_ISDIR(one.status.st_mode)])
    return found, is_whole


def folders(root: Path, most: int, left: int = MAX_OFFERED, *, is_for_all: bool = False) -> list[str]:
    """The first `most` folders below `root`, two deep, in order, among `left` entries.

    What cannot be read is left out.
    """
    found: list[str] = []
    outer, left = folders_in(root, "", left, is_for_all=is_for_all)
    for name in (outer or [])[:most]:
        inner, left = folders_in(root, name, left, is_for_all=is_for_all)
        found += [name, *(f"{name}/{one}" for one in inner)] if inner is not None else []
    return found[:most]


def folders_in(root: Path, path: str, left: int, *, is_for_all: bool = False) -> tuple[list[str] | None, int]:
    """The folders among `left` entries of a folder, and how many entries are left of these.

    None if the folder cannot be read.
    """
    try:
        with opened(root, path, is_for_all=is_for_all, is_read=True) as descriptor:
            with os.scandir(descriptor) as found:
                entries = list(islice(found, left))
            names = [one.name for one in entries if not one.name.startswith(OWN) and is_plain(one.name)]
            inside = _readable(descriptor, names, is_for_all)
    except (InvalidError, OSError):
        return None, left
    return sorted(name for name, status in inside if stat.S_ISDIR(status.st_mode)), left - len(entries)


def open_file(root: Path, path: str, *, is_for_all: bool = False) -> BinaryIO:
    """Open a file below `root`; with `is_for_all`, one that all accounts may read.

    Raises:
        InvalidError: its folder is none there.
        NotFoundError: it is no file, or not for all.
    """
    above, _, name = normal(path).rpartition("/")
    with opened(root, above, is_for_all=is_for_all) as descriptor:
        try:
            return _open_file(name, descriptor, is_for_all)
        except OSError as error:
            raise no_file(path, error.strerror) from None


def _open_file(name: str, folder: int, is_for_all: bool) -> BinaryIO:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    number = os.open(name, flags, dir_fd=folder)
    try:
        status = os.fstat(number)
        if not stat.S_ISREG(status.st_mode) or name.startswith(OWN):
            raise OSError(errno.EINVAL, "it is something else")
        if is_for_all and not is_public(status):
            raise PermissionError(errno.EACCES, PRIVATE)
        return os.fdopen(number, "rb")
    except BaseException:
        os.close(number)
        raise


@dataclass(frozen=True)
class FolderReader:
    """Implements `files.archives.reading.Reader` below a folder, out of which no link leads."""

    root: Path
    is_for_all: bool

    def status(self, path: Path) -> os.stat_result:
        """Implements `Reader`."""
        with self._above(path) as descriptor:
            name = "." if path == self.root else path.name
            return os.stat(name, dir_fd=descriptor, follow_symlinks=False)

    def target(self, path: Path) -> str:
        """Implements `Reader`."""
        with self._above(path) as descriptor:
            return os.readlink(path.name, dir_fd=descriptor)

    def open(self, path: Path) -> BinaryIO:
        """Implements `Reader`."""
        with self._above(path) as descriptor:
            return _open_file(path.name, descriptor, self.is_for_all)

    @contextlib.contextmanager
    def _above(self, path: Path) -> Iterator[int]:
        parts = path.relative_to(self.root).parts[:-1]
        descriptor = _open_folder(self.root, parts, self.is_for_all, is_read=False)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


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


@contextlib.contextmanager
def opened(root: Path, path: str, *, is_for_all: bool = False, is_read: bool = False) -> Iterator[int]:
    """A descriptor of a folder below `root`, which links do not lead to; raises like `listing`.

    With `is_for_all`, all accounts may go there; and list it, if it `is_read`.
    """
    parts = normal(path).split("/") if normal(path) else []
    is_own = any(part.startswith(OWN) for part in parts)
    if ".." in parts or "\0" in path or len(parts) > DEEPEST or is_own:
        raise InvalidError(
            f"source: {path[:200]!r} is no folder below the folder of data", "give a path in it, without '..'"
        )
    try:
        descriptor = _open_folder(root, parts, is_for_all, is_read=is_read)
    except OSError as error:
        told = repr(path[:200]) if parts else "the folder of data"
        raise InvalidError(
            f"source: {told} cannot be read: {error.strerror}",
            "GET /api/v1/data lists what there is; links are not followed",
        ) from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open_folder(root: Path, parts: Sequence[str], is_for_all: bool, *, is_read: bool) -> int:
    descriptor = os.open(root, _OPENING & ~os.O_NOFOLLOW)
    try:
        for depth in range(len(parts) + 1):
            if depth:
                inner = os.open(parts[depth - 1], _OPENING, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = inner
            needed = _LISTED if is_read and depth == len(parts) else stat.S_IXOTH
            if is_for_all and os.fstat(descriptor).st_mode & needed != needed:
                raise PermissionError(errno.EACCES, PRIVATE)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
