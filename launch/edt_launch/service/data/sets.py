"""Data sets on disk: folders that users upload into the data folder.

::

    <data folder>/users/<owner>/<name>/      the data set
    <data folder>/users/<owner>/.edt-<name>  how many files and bytes it has, as JSON
    <data folder>/.edt-uploads/<service>/    what is being received, and what is being deleted

A data set is complete from the moment it is there: it is filled beside, then renamed. Numbers and sizes are
those of what was uploaded; nothing is counted again, whatever jobs write into a data set later.
"""

import contextlib
import errno
import json
import os
import re
import secrets
import shutil
import stat
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from edt_launch.core.files import plain_files
from edt_launch.core.files.atomic import write_atomically
from edt_launch.core.files.walking import walk
from edt_launch.service.data import folders
from edt_launch.service.data.folders import OWN
from edt_launch.service.errors import (
    ConflictError,
    InvalidError,
    NotFoundError,
    TooLargeError,
    UnavailableError,
)
from edt_launch.service.files.archives.archive import unpack
from edt_launch.service.files.archives.deleting import delete_folder
from edt_launch.service.files.archives.entry import ArchiveLimits
from edt_launch.service.files.archives.plan import parts_of
from edt_launch.service.names import TAG, USER

USERS = "users"
"""The folder of users' data sets, below the folder of data."""

UPLOADS = f"{OWN}uploads"

NAME = TAG
"""What data sets are called."""

MAX_SETS = 1000
"""Data sets that are listed."""

_TROUBLE = {
    errno.ENOSPC: "is full",
    errno.EDQUOT: "is full: its quota is used up",
    errno.EROFS: "is read-only",
    errno.EACCES: "must not be written by the service",
    errno.EPERM: "must not be written by the service",
}


@dataclass(frozen=True)
class DataSet:
    """A data set; `files` and `size`, in bytes, are those of what was uploaded, None if nobody knows.

    `time` is when it was changed through the service last.
    """

    owner: str
    name: str
    files: int | None
    size: int | None
    time: float

    @property
    def path(self) -> str:
        """Its place below the folder of data."""
        return f"{USERS}/{self.owner}/{self.name}"


class DataSets:
    """The data sets in a folder of data.

    Args:
        service: tells services that share the folder apart.
        limits: of one data set.
        is_for_all: whether jobs run under other accounts, which are to read it.
    """

    def __init__(
        self, root: Path, service: str, limits: ArchiveLimits, clock: Callable[[], float], *, is_for_all: bool
    ) -> None:
        self.root = root
        self._limits = limits
        self._clock = clock
        self._is_for_all = is_for_all
        self._incoming = root / UPLOADS / service
        self._changing = threading.Lock()

    def settle(self) -> None:
        """Delete what a service that was killed was receiving or deleting."""
        with contextlib.suppress(OSError):
            for left in self._incoming.iterdir():
                delete_folder(left)

    def all(self) -> tuple[list[DataSet], bool]:
        """The first data sets by owner and name, and whether these are all."""
        found: list[DataSet] = []
        for owner in _names(self.root / USERS, USER):
            found += (self._known(owner, name) for name in self.names(owner)[: MAX_SETS + 1 - len(found)])
            if len(found) > MAX_SETS:
                break
        return found[:MAX_SETS], len(found) <= MAX_SETS

    def names(self, owner: str) -> list[str]:
        """The names of an owner's first data sets."""
        return _names(self.root / USERS / owner, NAME)

    def get(self, owner: str, name: str) -> DataSet | None:
        """A data set; None if there is none of that name."""
        place = self._place(owner, name)
        return self._known(owner, name) if place.is_dir() and not place.is_symlink() else None

    @contextlib.contextmanager
    def received(self, expected: int = 0) -> Iterator[BinaryIO]:
        """A file for what is being received, of `expected` bytes at least; it is gone afterwards.

        Raises:
            UnavailableError: the disk has no room for it, or cannot be written.
        """
        with self._explained():
            self._make_incoming()
            free = shutil.disk_usage(self._incoming).free
            if expected > free:
                raise UnavailableError(
                    f"the upload has {expected:,} bytes, and the disk of the data folder has {free:,} left",
                    "delete data sets, or ask the administrator for room",
                )
            with self._beside() as beside, (beside / "received").open("w+b") as file:
                yield file

    def put(self, owner: str, name: str, archive: BinaryIO, *, is_replacing: bool) -> DataSet:
        """Make a data set of an archive's content.

        Raises:
            ConflictError: there is one of that name already, which is not to be replaced.
            ArchiveError, TooLargeError: the archive cannot be used.
            UnavailableError: the disk is full, or cannot be written.
        """
        place = self._place(owner, name)
        with self._explained(), self._beside() as beside:
            content = unpack(archive, beside / "new", self._limits)
            self._open_to_all(beside / "new")
            with self._changing:
                self._make_parents(place)
                if os.path.lexists(place):
                    if not is_replacing:
                        raise taken(owner, name)
                    place.rename(beside / "old")
                try:
                    (beside / "new").rename(place)
                except OSError as error:
                    if (beside / "old").exists():
                        (beside / "old").rename(place)
                    if error.errno in (errno.ENOTEMPTY, errno.EEXIST):  # another service's
                        raise taken(owner, name) from None
                    raise
                return self._note(DataSet(owner, name, content.files, content.size, self._clock()))

    def put_file(
        self, owner: str, name: str, path: str, file: BinaryIO | Path, *, is_replacing: bool
    ) -> DataSet:
        """Put a file at a path in a data set, which is made if there is none.

        A file that was `received` is moved if it is given by its path; any other one is copied.

        Raises:
            ConflictError: something is there already, which is not to be replaced.
            InvalidError, TooLargeError: it cannot be there.
            UnavailableError: the disk is full, or cannot be written.
        """
        *above, last = _parts(path)
        place = self._place(owner, name)
        with self._explained(), self._beside() as beside:
            staged = beside / "file"
            if isinstance(file, Path):
                file.rename(staged)
            else:
                with staged.open("wb") as copy:
                    shutil.copyfileobj(file, copy, 2**20)
            self._open_to_all(beside)
            size = staged.stat().st_size
            if size > self._limits.size:
                raise TooLargeError(
                    f"the file has {size:,} bytes, and {self._limits.size:,} are allowed", self._limits.advice
                )
            with self._changing:
                self._make_parents(place)
                present = self.get(owner, name) or DataSet(owner, name, 0, 0, 0.0)
                with self._folder(present, above, is_made=True) as folder:
                    before = _status(last, folder)
                    if before is not None and (not is_replacing or not stat.S_ISREG(before.st_mode)):
                        raise ConflictError(
                            f"there is a {path[:200]!r} in {present.path} already",
                            "replace it, or rename yours",
                        )
                    changed = self._with(present, before is None, size - (before.st_size if before else 0))
                    os.rename(staged, last, dst_dir_fd=folder)
                return self._note(changed)

    def delete(self, owner: str, name: str) -> Callable[[], None]:
        """Take a data set away at once; what is returned deletes its files, which may take a while.

        Raises:
            NotFoundError: there is none of that name.
            UnavailableError: the disk cannot be written.
        """
        with self._explained(), self._changing:
            if self.get(owner, name) is None:
                raise missing(owner, name)
            trash = self._incoming / secrets.token_hex(8)
            self._make_incoming()
            self._place(owner, name).rename(trash)
            self._notes(owner, name).unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # it has others
                self._place(owner, name).parent.rmdir()
        return lambda: delete_folder(trash)

    def delete_file(self, owner: str, name: str, path: str) -> None:
        """Delete a file of a data set; raises like `delete`, and if there is no such file."""
        *above, last = _parts(path)
        with self._explained(), self._changing:
            present = self.get(owner, name)
            if present is None:
                raise missing(owner, name)
            with self._folder(present, above) as folder:
                status = _status(last, folder)
                if status is None or stat.S_ISDIR(status.st_mode):
                    raise folders.no_file(f"{present.path}/{path}", "it is not there, or a folder")
                os.unlink(last, dir_fd=folder)
            files = None if present.files is None else present.files - 1
            size = None if present.size is None else present.size - status.st_size
            self._note(replace(present, files=files, size=size, time=self._clock()))

    def _with(self, present: DataSet, is_new: bool, size: int) -> DataSet:
        """A data set with one more file, or another one of its files, by which it grows."""
        if present.files is None or present.size is None:
            return replace(present, time=self._clock())
        changed = replace(present, files=present.files + is_new, size=present.size + size, time=self._clock())
        limits = self._limits
        if (changed.size or 0) > limits.size or (changed.files or 0) > limits.count:
            raise TooLargeError(
                f"{present.path} would have {changed.files:,} files and {changed.size:,} bytes; allowed are "
                f"{limits.count:,} and {limits.size:,}",
                limits.advice,
            )
        return changed

    @contextlib.contextmanager
    def _folder(self, data_set: DataSet, above: list[str], *, is_made: bool = False) -> Iterator[int]:
        """A descriptor of a folder in a data set, which no link leads to."""
        path = data_set.path.split("/")[:-1]
        for name in (data_set.name, *above) if is_made else ():
            with (
                folders.opened(self.root, "/".join(path)) as descriptor,
                contextlib.suppress(FileExistsError),
            ):
                os.mkdir(name, 0o755, dir_fd=descriptor)
                if self._is_for_all:
                    os.chmod(name, 0o755, dir_fd=descriptor)
            path.append(name)
        with folders.opened(self.root, "/".join([data_set.path, *above])) as descriptor:
            yield descriptor

    def _place(self, owner: str, name: str) -> Path:
        if not re.fullmatch(USER, owner) or not re.fullmatch(NAME, name):
            raise InvalidError(
                f"{owner}/{name}"[:200] + " is no name of a data set",
                "use letters, digits and any of _ . -, 64 characters at most, and no . or - first",
            )
        return self.root / USERS / owner / name

    def _notes(self, owner: str, name: str) -> Path:
        return self.root / USERS / owner / f"{OWN}{name}"

    def _note(self, data_set: DataSet) -> DataSet:
        known = {"files": data_set.files, "size": data_set.size, "time": data_set.time}
        write_atomically(self._notes(data_set.owner, data_set.name), json.dumps(known) + "\n")
        return data_set

    def _known(self, owner: str, name: str) -> DataSet:
        """A data set with what is noted of it, if that can be read: a job may have spoilt it."""
        try:
            known = json.loads(plain_files.read(self._notes(owner, name)))
            return DataSet(owner, name, int(known["files"]), int(known["size"]), float(known["time"]))
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            with contextlib.suppress(OSError):
                return DataSet(owner, name, None, None, self._place(owner, name).lstat().st_mtime)
            return DataSet(owner, name, None, None, 0.0)  # gone meanwhile

    @contextlib.contextmanager
    def _beside(self) -> Iterator[Path]:
        """A folder for what is not in its place yet; it is deleted afterwards with what is left in it."""
        self._make_incoming()
        folder = self._incoming / secrets.token_hex(8)
        folder.mkdir()
        try:
            yield folder
        finally:
            delete_folder(folder)

    def _make_incoming(self) -> None:
        if not self.root.is_dir():
            self.root.mkdir(parents=True, exist_ok=True)
            if self._is_for_all:
                self.root.chmod(0o755)
        self._incoming.mkdir(parents=True, exist_ok=True)

    def _make_parents(self, place: Path) -> None:
        for folder in (place.parent.parent, place.parent):
            folder.mkdir(exist_ok=True)
            if self._is_for_all:
                folder.chmod(0o755)

    def _open_to_all(self, folder: Path) -> None:
        """Let other accounts read what is in a new folder, whatever the service's umask says."""
        if not self._is_for_all:
            return
        for path in (folder, *walk(folder)):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno not in _TROUBLE:
                raise
            is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            advice = (
                "delete data sets, or ask the administrator for room" if is_full else "tell its administrator"
            )
            what = f"the disk of the data folder {_TROUBLE[error.errno]}: nothing was stored"
            raise UnavailableError(what, advice) from None


def missing(owner: str, name: str) -> NotFoundError:
    """The error about a data set that is not there."""
    return NotFoundError(
        f"there is no data set {owner}/{name}", "GET /api/v1/datasets lists them: `edt data ls`"
    )


def taken(owner: str, name: str) -> ConflictError:
    """The error about a data set that is there already."""
    return ConflictError(f"there is a data set {owner}/{name} already", "replace it, or choose another name")


def _parts(path: str) -> list[str]:
    parts = parts_of(path)
    if not parts or not path.isprintable() or path.endswith("/") or any(one.startswith(OWN) for one in parts):
        raise InvalidError(f"{path[:200]!r} is no name of a file in a data set", "name a file")
    return parts


def _status(name: str, folder: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _names(folder: Path, pattern: str) -> list[str]:
    """The folders with such names among the first entries of a folder, in order."""
    try:
        with os.scandir(folder) as entries:
            found = islice(entries, folders.MAX_READ)
            return sorted(
                one.name
                for one in found
                if re.fullmatch(pattern, one.name) and one.is_dir(follow_symlinks=False)
            )
    except OSError:  # there are none
        return []
