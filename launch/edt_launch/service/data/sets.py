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
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import structlog

from edt_launch.core.files import plain_files
from edt_launch.core.files.atomic import write_atomically
from edt_launch.service.data import folders, notes, set_files
from edt_launch.service.data.data_set import NAME, USERS, DataSet, missing, taken
from edt_launch.service.data.disk import explained, first_link, open_to_all, remove_empty
from edt_launch.service.data.folders import OWN
from edt_launch.service.data.set_files import SetFiles
from edt_launch.service.data.uploads import RETURN, Uploads
from edt_launch.service.errors import (
    ConflictError,
    InvalidError,
    ServiceError,
    TooLargeError,
    UnavailableError,
)
from edt_launch.service.files.archives.archive import unpack
from edt_launch.service.files.archives.deleting import delete_file, delete_folder
from edt_launch.service.files.archives.entry import ArchiveLimits
from edt_launch.service.names import USER

log = structlog.get_logger()

MAX_SETS = 1000
"""Data sets that are listed."""


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
        self._uploads = Uploads(root, service)
        self._changing = threading.Lock()

    def settle(self) -> None:
        """Delete what a service that was killed was receiving or deleting.

        A data set that it was replacing goes back to its place if nothing is there.
        """
        try:
            if link := self._uploads.link():
                log.warning("a link is not followed", link=str(link))
                return
            left = list(self._uploads.folder.iterdir())
        except FileNotFoundError:
            return
        except OSError as error:
            log.warning("uploads cannot be tidied up", folder=str(self._uploads.folder), reason=str(error))
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
        if left.is_symlink() or not os.path.lexists(left / RETURN) or not os.path.lexists(old):
            return
        owner, _, name = plain_files.read(left / RETURN).decode(errors="replace").strip().partition("/")
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
        with explained(), self._uploads.beside() as beside:
            content = unpack(archive, beside / "new", self._limits)
            self._open(beside / "new")
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
        """Put what is `new` beside in the place of a data set; `RETURN` is there while none is in place."""
        place, old, back = self._place(owner, name), beside / "old", beside / RETURN
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
        places = [set_files.parts(path) for path, _ in files]
        if twice := [one for one in places if places.count(one) > 1]:
            raise InvalidError(f"{'/'.join(twice[0])[:200]!r} was sent twice", "rename one of them")
        with explained(), self._uploads.beside() as beside:
            staged = [self._staged(file, beside / str(n)) for n, (_, file) in enumerate(files)]
            self._open(beside)
            with self._changing, contextlib.ExitStack() as undo:
                check()
                self._refuse_link(owner)
                changed = self.get(owner, name) or DataSet(owner, name, 0, 0, 0.0)
                for parts, one in zip(places, staged, strict=True):
                    before = self._files(changed).status(parts)
                    if before is not None and (not is_replacing or not stat.S_ISREG(before.st_mode)):
                        raise ConflictError(
                            f"there is a {'/'.join(parts)[:200]!r} in {changed.path} already",
                            "replace it, or rename yours",
                        )
                    changed = changed.with_file(before, one.stat().st_size, self._limits, self._clock())
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
                self._files(data_set).make_folders(above, undo)
                with self._files(data_set).folder(above) as folder:
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
            self._uploads.make()
            trash = self._uploads.folder / secrets.token_hex(8)
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
        *above, last = set_files.parts(path)
        with explained(), self._changing:
            check()
            present = self.get(owner, name)
            if present is None:
                raise missing(owner, name)
            with self._files(present).folder(above) as folder:
                status = set_files.status_in(last, folder)
                if status is None or stat.S_ISDIR(status.st_mode):
                    raise folders.no_file(f"{present.path}/{path}", "it is not there, or a folder")
                os.unlink(last, dir_fd=folder)
            self._note(present.without_file(status, self._clock()))

    def _open(self, folder: Path) -> None:
        if self._is_for_all:
            open_to_all(folder)

    def _files(self, data_set: DataSet) -> SetFiles:
        return SetFiles(self.root, data_set, is_for_all=self._is_for_all)

    def received(self, expected: int = 0) -> AbstractContextManager[BinaryIO]:
        """A file for what is being received; see `Uploads.received`."""
        return self._uploads.received(expected)

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


def _noted(owner: str, name: str, note: notes.Note) -> DataSet:
    return DataSet(owner, name, note.files, note.size, note.time)


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
