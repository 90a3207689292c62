"""Unpacking an archive that a stranger has sent.

Nothing is written outside the folder, and nothing in it leads outside: names are relative and without "..";
devices and pipes are refused; links are made only after everything else is there, so that nothing is ever
written through one, and each is then followed to see where it ends. Size and number are counted while
unpacking, whatever the archive says of itself; so are the bytes that the decompressor gives, which a bomb is
made of.

Formats: tar, tar.gz, zip (without zip64, encryption and rare compressions), told apart by their first bytes.
"""

import errno
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from edt_launch.service import tar_archive, zip_archive
from edt_launch.service.archive_entry import MAX_PATH, Entry, Limits, too_large
from edt_launch.service.deleting import delete_folder
from edt_launch.service.errors import ArchiveError, TooLargeError

BLOCK = 2**16
"""Bytes that are copied at a time."""

MAX_DEPTH = 100
"""Folders within each other: tools that go through code recurse, and paths end somewhere."""


def unpack(file: BinaryIO, into: Path, limits: Limits) -> None:
    """Unpack an archive, which can be sought, into a new folder, which is not there if anything goes wrong.

    Raises:
        ArchiveError: it is broken, of an unknown format, or contains what it must not.
        TooLargeError: it exceeds the limits.
        OSError: the disk is full, say.
    """
    file.seek(0)
    start = file.read(512)
    file.seek(0)
    kind = zip_archive if start[:4] in (b"PK\x03\x04", b"PK\x05\x06") else tar_archive
    into.mkdir(parents=True)
    try:
        unpacking = _Unpacking(into, limits)
        with kind.explained():
            for entry in kind.entries(file, limits):
                unpacking.add(entry)
        unpacking.make_links()
    except BaseException:
        delete_folder(into)
        raise


@dataclass
class _Unpacking:
    root: Path
    limits: Limits
    size: int = 0
    count: int = 0
    links: list[tuple[Path, Entry]] = field(default_factory=list)

    def add(self, entry: Entry) -> None:
        parts = _parts(entry.path)
        if not parts and entry.kind == "folder":
            return  # "./"
        path = self.root.joinpath(*parts)
        try:
            self._folder(path.parent)
            self._add(entry, path)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            raise ArchiveError(
                f"{_shown(entry.path)} is in the archive twice, as different things", "pack it again"
            ) from None
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
            raise ArchiveError(f"{_shown(entry.path)}: the name is too long", "shorten it") from None

    def _add(self, entry: Entry, path: Path) -> None:
        match entry.kind:
            case "folder":
                self._folder(path)
            case "file":
                self._count(entry.path)
                self._write(entry, path)
            case "link" | "same":
                self._count(entry.path)
                self.links.append((path, entry))
            case other:
                raise ArchiveError(
                    f"{_shown(entry.path)} is {other}",
                    "only files, folders and links inside can be submitted",
                )

    def make_links(self) -> None:
        # Hard ones first, while nothing can lead astray.
        for path, entry in sorted(self.links, key=lambda link: link[1].kind != "same"):
            try:
                if entry.kind == "same":
                    self._same(path, entry)
                elif entry.target.startswith("/") or not entry.target:
                    raise _leads_outside(entry)
                else:
                    path.symlink_to(entry.target)
            except FileExistsError:
                raise ArchiveError(f"{_shown(entry.path)} is a link, and something else, too") from None
        inside = os.path.realpath(self.root)
        for path, entry in self.links:
            try:
                ends = os.path.realpath(path)
            except RecursionError:
                raise ArchiveError(f"{_shown(entry.path)} is a link to links without end") from None
            if ends != inside and not ends.startswith(inside + os.sep):
                raise _leads_outside(entry)

    def _same(self, path: Path, entry: Entry) -> None:
        source = self.root.joinpath(*_parts(entry.target))
        if not source.is_file() or source.is_symlink():
            raise ArchiveError(
                f"{_shown(entry.path)} is a hard link to {_shown(entry.target)}, which is not there"
            )
        os.link(source, path, follow_symlinks=False)

    def _folder(self, path: Path) -> None:
        missing = []
        while not path.is_dir():
            missing.append(path)
            path = path.parent
        for folder in reversed(missing):
            self._count(folder.name)
            folder.mkdir()

    def _write(self, entry: Entry, path: Path) -> None:
        assert entry.open is not None
        path.unlink(missing_ok=True)  # a later one of the same name counts
        mode = 0o755 if entry.mode & 0o111 else 0o644
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
        with open(descriptor, "wb") as file:
            content = entry.open()
            while block := content.read(BLOCK):
                self.size += len(block)
                if self.size > self.limits.size:
                    raise too_large(self.limits)
                file.write(block)

    def _count(self, name: str) -> None:
        self.count += 1
        if self.count > self.limits.count:
            raise TooLargeError(
                f"the code has more than {self.limits.count:,} files and folders (at {_shown(name)})",
                "leave out what the job does not need, or read data from a shared folder",
            )


def _parts(path: str) -> list[str]:
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or ".." in parts:
        raise ArchiveError(
            f"{_shown(path)} leads outside the archive's folder", "pack it with relative names"
        )
    if "\0" in path or len(os.fsencode(path)) > MAX_PATH:
        raise ArchiveError(f"{_shown(path)}: such a name cannot be", "shorten it")
    if len(parts) > MAX_DEPTH:
        raise ArchiveError(
            f"{_shown(path)}: {len(parts)} names within each other, more than {MAX_DEPTH}",
            "leave out folders that the job does not need",
        )
    return parts


def _leads_outside(entry: Entry) -> ArchiveError:
    return ArchiveError(
        f"{_shown(entry.path)} is a link to {_shown(entry.target)}, outside the code",
        "leave it out, or submit what it points to (tar -h)",
    )


def _shown(path: str) -> str:
    return repr(path if len(path) <= 80 else path[:77] + "...")
