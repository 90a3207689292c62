"""Data sets on disk: folders that users upload into the data folder.

::

    <data folder>/users/<owner>/<name>/      the data set
    <data folder>/users/<owner>/.edt-<name>  how many files and bytes it has, as JSON
    <data folder>/.edt-uploads/<service>/    what is being received, and what is being deleted

A data set is complete from the moment it is there: it is filled beside, then renamed. Numbers and sizes are
those of what was uploaded; nothing is counted again, whatever jobs write into a data set later. Links in
the place of these folders are not followed.
"""

import contextlib
import errno
import os
import re
import secrets
import shutil
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import structlog

from edt_launch.core.files import plain_files
from edt_launch.core.files.atomic import write_atomically
from edt_launch.core.files.walking import walk
from edt_launch.service.data import folders, notes
from edt_launch.service.data.disk import explained, first_link, remove_empty
from edt_launch.service.data.folders import OWN
from edt_launch.service.errors import (
    ConflictError,
    InvalidError,
    NotFoundError,
    ServiceError,
    TooLargeError,
    UnavailableError,
)
from edt_launch.service.files.archives.archive import unpack
from edt_launch.service.files.archives.deleting import delete_file, delete_folder
from edt_launch.service.files.archives.entry import ArchiveLimits
from edt_launch.service.files.archives.plan import parts_of
from edt_launch.service.names import TAG, USER

log = structlog.get_logger()

USERS = "users"
"""The folder of users' data sets, below the folder of data."""

UPLOADS = f"{OWN}uploads"

NAME = TAG
"""What data sets are called."""

MAX_SETS = 1000
"""Data sets that are listed."""

_RETURN = "place"
"""A file beside a data set that is being replaced: owner and name of where it goes back to."""


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


def _unchecked() -> None:
    pass


class DataSets:
    """The data sets in a folder of data.

    Methods that change one call a `check`, which may refuse that, just before the change.

    Args:
        root: the folder, which is not made.
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
        """Delete what a service that was killed was receiving or deleting.

        A data set that it was replacing goes back to its place if nothing is there.
        """
        try:
            if link := self._link_to_incoming():
                log.warning("a link is not followed", link=str(link))
                return
            left = list(self._incoming.iterdir())
        except FileNotFoundError:
            return
        except OSError as error:
            log.warning("uploads cannot be tidied up", folder=str(self._incoming), reason=str(error))
            return
        for folder in left:
            try:
                self._put_back(folder)
            except (OSError, ServiceError) as error:
                log.warning("a data set cannot be put back", folder=str(folder), reason=str(error))
            else:
                delete_folder(folder)

    def _put_back(self, left: Path) -> None:
        """Move a data set that was being replaced back to its place."""
        old = left / "old"
        if left.is_symlink() or not os.path.lexists(left / _RETURN) or not os.path.lexists(old):
            return
        owner, _, name = plain_files.read(left / _RETURN).decode(errors="replace").strip().partition("/")
        place = self._place(owner, name)
        self._refuse_link(owner)
        if os.path.lexists(place):  # the new one, which the note may not be about
            self._forget(owner, name)
            return
        with contextlib.ExitStack() as undo:
            self._make_parents(place, undo)
            old.rename(place)
            undo.pop_all()
        log.warning("a data set was put back", path=str(place))

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
        return [] if self._link_to(owner) else _names(self.root / USERS / owner, NAME)

    def get(self, owner: str, name: str) -> DataSet | None:
        """A data set; None if there is none of that name."""
        place = self._place(owner, name)
        with explained():
            is_there = place.is_dir() and not place.is_symlink() and not self._link_to(owner)
            return self._known(owner, name) if is_there else None

    @contextlib.contextmanager
    def received(self, expected: int = 0) -> Iterator[BinaryIO]:
        """A file for what is being received, of `expected` bytes at least; it is gone afterwards.

        Raises:
            UnavailableError: the disk has no room for it, or cannot be written.
        """
        with explained():
            self._make_incoming()
            free = shutil.disk_usage(self._incoming).free
            if expected > free:
                raise UnavailableError(
                    f"the upload has {expected:,} bytes, and the disk of the data folder has {free:,} left",
                    "delete data sets, or ask the administrator for room",
                )
            with self._beside() as beside, (beside / "received").open("w+b") as file:
                yield file

    def put(
        self,
        owner: str,
        name: str,
        archive: BinaryIO,
        *,
        is_replacing: bool,
        check: Callable[[], None] = _unchecked,
    ) -> DataSet:
        """Make a data set of an archive's content.

        Raises:
            ConflictError: there is one of that name already, which is not to be replaced.
            ArchiveError, TooLargeError: the archive cannot be used.
            UnavailableError: the disk is full, or cannot be written.
        """
        place = self._place(owner, name)
        with explained(), self._beside() as beside:
            content = unpack(archive, beside / "new", self._limits)
            self._open_to_all(beside / "new")
            with self._changing, contextlib.ExitStack() as undo:
                check()
                self._refuse_link(owner)
                if not is_replacing and os.path.lexists(place):
                    raise taken(owner, name)
                self._make_parents(place, undo)
                self._exchange(beside, owner, name)
                undo.pop_all()
                return self._note(DataSet(owner, name, content.files, content.size, self._clock()))

    def _exchange(self, beside: Path, owner: str, name: str) -> None:
        """Put what is `new` beside in the place of a data set; `_RETURN` is there while none is in place."""
        place, old, back = self._place(owner, name), beside / "old", beside / _RETURN
        try:
            if os.path.lexists(place):
                write_atomically(back, f"{owner}/{name}\n")
                place.rename(old)
            (beside / "new").rename(place)
        except OSError as error:
            if os.path.lexists(old) and not os.path.lexists(place):
                old.rename(place)
            delete_file(back)
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):  # another service's
                raise taken(owner, name) from None
            raise
        delete_file(back)

    def put_file(
        self,
        owner: str,
        name: str,
        path: str,
        file: BinaryIO | Path,
        *,
        is_replacing: bool,
        check: Callable[[], None] = _unchecked,
    ) -> DataSet:
        """Put a file at a path in a data set; raises like `put_files`."""
        return self.put_files(owner, name, [(path, file)], is_replacing=is_replacing, check=check)

    def put_files(
        self,
        owner: str,
        name: str,
        files: Sequence[tuple[str, BinaryIO | Path]],
        *,
        is_replacing: bool,
        check: Callable[[], None] = _unchecked,
    ) -> DataSet:
        """Put files at paths in a data set, which is made if there is none: all of them, or none.

        A file that was `received` is moved if it is given by its path; any other one is copied.

        Raises:
            ConflictError: something is there already, which is not to be replaced.
            InvalidError, TooLargeError: one cannot be there.
            UnavailableError: the disk is full, or cannot be written; it says so if some are stored by then.
        """
        place = self._place(owner, name)
        places = [_parts(path) for path, _ in files]
        if twice := [one for one in places if places.count(one) > 1]:
            raise InvalidError(f"{'/'.join(twice[0])[:200]!r} was sent twice", "rename one of them")
        with explained(), self._beside() as beside:
            staged = [self._staged(file, beside / str(n)) for n, (_, file) in enumerate(files)]
            self._open_to_all(beside)
            with self._changing, contextlib.ExitStack() as undo:
                check()
                self._refuse_link(owner)
                changed = self.get(owner, name) or DataSet(owner, name, 0, 0, 0.0)
                for parts, one in zip(places, staged, strict=True):
                    before = self._status(changed, parts)
                    if before is not None and (not is_replacing or not stat.S_ISREG(before.st_mode)):
                        raise ConflictError(
                            f"there is a {'/'.join(parts)[:200]!r} in {changed.path} already",
                            "replace it, or rename yours",
                        )
                    changed = self._with(changed, before, one.stat().st_size)
                self._make_parents(place, undo)
                self._move_in(changed, list(zip(places, staged, strict=True)), undo)
                undo.pop_all()
                return self._note(changed)

    def _staged(self, file: BinaryIO | Path, staged: Path) -> Path:
        if isinstance(file, Path):
            file.rename(staged)
        else:
            with staged.open("wb") as copy:
                shutil.copyfileobj(file, copy, 2**20)
        size = staged.stat().st_size
        if size > self._limits.size:
            raise TooLargeError(
                f"the file has {size:,} bytes, and {self._limits.size:,} are allowed", self._limits.advice
            )
        return staged

    def _move_in(
        self, data_set: DataSet, files: Sequence[tuple[list[str], Path]], undo: contextlib.ExitStack
    ) -> None:
        """Move files to their places in a data set."""
        for number, ((*above, last), file) in enumerate(files):
            try:
                self._make_folders(data_set, above, undo)
                with self._folder(data_set, above) as folder:
                    os.rename(file, last, dst_dir_fd=folder)
            except OSError as error:
                if not number:
                    raise
                self._forget(data_set.owner, data_set.name)
                raise UnavailableError(
                    f"{number} of {len(files)} files were stored, not {last[:200]!r}: {error.strerror}",
                    "send the others again",
                ) from None

    def delete(self, owner: str, name: str, *, check: Callable[[], None] = _unchecked) -> Callable[[], None]:
        """Take a data set away at once; what is returned deletes its files, which may take a while.

        Raises:
            NotFoundError: there is none of that name.
            UnavailableError: the disk cannot be written.
        """
        place = self._place(owner, name)
        with explained(), self._changing:
            check()
            if self.get(owner, name) is None:
                raise missing(owner, name)
            self._make_incoming()
            trash = self._incoming / secrets.token_hex(8)
            trash.mkdir()
            with contextlib.ExitStack() as undo:
                undo.callback(remove_empty, trash)
                place.rename(trash / "old")
                undo.pop_all()
            self._forget(owner, name)
            remove_empty(place.parent)
        return lambda: delete_folder(trash)

    def delete_file(
        self, owner: str, name: str, path: str, *, check: Callable[[], None] = _unchecked
    ) -> None:
        """Delete a file of a data set; raises like `delete`, and if there is no such file."""
        *above, last = _parts(path)
        with explained(), self._changing:
            check()
            present = self.get(owner, name)
            if present is None:
                raise missing(owner, name)
            with self._folder(present, above) as folder:
                status = _status(last, folder)
                if status is None or stat.S_ISDIR(status.st_mode):
                    raise folders.no_file(f"{present.path}/{path}", "it is not there, or a folder")
                os.unlink(last, dir_fd=folder)
            files = _sum(present.files, -1 if stat.S_ISREG(status.st_mode) else 0)
            size = _sum(present.size, -_counted(status))
            self._note(replace(present, files=files, size=size, time=self._clock()))

    def _with(self, present: DataSet, before: os.stat_result | None, size: int) -> DataSet:
        """A data set with one more file, or another one in the place of that `before`."""
        files = _sum(present.files, 1 if before is None else 0)
        total = _sum(present.size, size - (0 if before is None else _counted(before)))
        limits = self._limits
        if (total or 0) > limits.size or (files or 0) > limits.count:
            raise TooLargeError(
                f"{present.path} would have {_shown(files)} files and {_shown(total)} bytes; allowed are "
                f"{limits.count:,} and {limits.size:,}",
                limits.advice,
            )
        return replace(present, files=files, size=total, time=self._clock())

    def _status(self, data_set: DataSet, parts: list[str]) -> os.stat_result | None:
        """What is at a path in a data set, which no link leads to; None if nothing is."""
        above = data_set.path.split("/")[:-1]
        if not os.path.lexists(self._place(data_set.owner, data_set.name)):
            return None
        status = None
        for name in (data_set.name, *parts):
            with folders.opened(self.root, "/".join(above)) as folder:
                status = _status(name, folder)
            if status is None:
                return None
            above.append(name)
        return status

    @contextlib.contextmanager
    def _folder(self, data_set: DataSet, above: list[str]) -> Iterator[int]:
        """A descriptor of a folder in a data set, which no link leads to."""
        with folders.opened(self.root, "/".join([data_set.path, *above])) as descriptor:
            yield descriptor

    def _make_folders(self, data_set: DataSet, above: list[str], undo: contextlib.ExitStack) -> None:
        path = data_set.path.split("/")[:-1]
        for name in (data_set.name, *above):
            with (
                folders.opened(self.root, "/".join(path)) as descriptor,
                contextlib.suppress(FileExistsError),
            ):
                os.mkdir(name, 0o755, dir_fd=descriptor)
                undo.callback(remove_empty, self.root.joinpath(*path, name))
                if self._is_for_all:
                    os.chmod(name, 0o755, dir_fd=descriptor)
            path.append(name)

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
        """Note what a data set is after a change; the numbers are unknown if that cannot be done."""
        note = notes.Note(files=data_set.files, size=data_set.size, time=data_set.time)
        return _noted(
            data_set.owner, data_set.name, notes.write(self._notes(data_set.owner, data_set.name), note)
        )

    def _forget(self, owner: str, name: str) -> None:
        notes.forget(self._notes(owner, name))

    def _known(self, owner: str, name: str) -> DataSet:
        """A data set with what is noted of it, if that can be read: a job may have spoilt it."""
        changed = 0.0
        with contextlib.suppress(OSError):  # gone meanwhile
            changed = self._place(owner, name).lstat().st_mtime
        return _noted(owner, name, notes.read(self._notes(owner, name), changed))

    @contextlib.contextmanager
    def _beside(self) -> Iterator[Path]:
        """A folder for what is not in its place yet; it is deleted afterwards with what is left in it.

        It stays for `settle` if a data set in it could not go back to its place.
        """
        self._make_incoming()
        folder = self._incoming / secrets.token_hex(8)
        folder.mkdir()
        try:
            yield folder
        finally:
            if not os.path.lexists(folder / _RETURN):
                delete_folder(folder)

    def _make_incoming(self) -> None:
        if not self.root.is_dir():
            raise UnavailableError(
                f"the data folder {self.root} is missing", "ask the administrator to mount or create it"
            )
        if link := self._link_to_incoming():
            raise UnavailableError(f"{link} is a link, which is not followed", "tell its administrator")
        self._incoming.mkdir(parents=True, exist_ok=True)

    def _link_to_incoming(self) -> Path | None:
        return first_link(self._incoming.parent, self._incoming)

    def _link_to(self, owner: str) -> Path | None:
        """What would lead out of the data folder on the way to an owner's data sets."""
        return first_link(self.root / USERS, self.root / USERS / owner)

    def _refuse_link(self, owner: str) -> None:
        if link := self._link_to(owner):
            raise ConflictError(
                f"{link.relative_to(self.root)} in the data folder is a link, which is not followed",
                "ask the administrator to put a folder in its place",
            )

    def _make_parents(self, place: Path, undo: contextlib.ExitStack) -> None:
        for folder in (place.parent.parent, place.parent):
            if not folder.is_dir():
                undo.callback(remove_empty, folder)
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


def _noted(owner: str, name: str, note: notes.Note) -> DataSet:
    return DataSet(owner, name, note.files, note.size, note.time)


def _counted(file: os.stat_result) -> int:
    """The bytes that go with a file: others of the same content, hard links, keep them."""
    return file.st_size if stat.S_ISREG(file.st_mode) and file.st_nlink == 1 else 0


def _sum(number: int | None, change: int) -> int | None:
    """A number after a change, where jobs may have changed more than was counted."""
    return None if number is None else max(0, number + change)


def _shown(number: int | None) -> str:
    return "an unknown number of" if number is None else f"{number:,}"


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
