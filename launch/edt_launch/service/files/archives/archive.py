"""Unpacking an archive that a stranger has sent.

Nothing is written outside the folder, and nothing in it leads outside: names are relative and without "..";
devices and pipes are refused; links are followed to see where they end before anything is written, and are
made only after everything else is there, so that nothing is ever written through one. Size and number are
counted once more while unpacking, whatever the archive says of itself; so are the bytes that the decompressor
gives, which a bomb is made of.

Formats: tar, tar.gz, zip (without encryption and rare compressions), told apart by their first bytes.
"""

import errno
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple

from edt_launch.service.errors import ArchiveError
from edt_launch.service.files.archives import tar_archive, zip_archive
from edt_launch.service.files.archives.deleting import delete_folder
from edt_launch.service.files.archives.entry import ArchiveLimits, Entry, too_large
from edt_launch.service.files.archives.plan import UnpackPlan, parts_of, shown

BLOCK = 2**16
"""Bytes that are copied at a time."""


class Unpacked(NamedTuple):
    """What an archive has become: the number of its files, and their bytes."""

    files: int
    size: int


def unpack(file: BinaryIO, into: Path, limits: ArchiveLimits) -> Unpacked:
    """Unpack an archive, which can be sought, into a new folder, which is not there if anything goes wrong.

    Raises:
        ArchiveError: it is broken, of an unknown format, or contains what it must not.
        TooLargeError: it exceeds the limits.
        OSError: the disk is full, say, or has less room than the content needs.
    """
    file.seek(0)
    start = file.read(512)
    kind = zip_archive if start[:4] in (b"PK\x03\x04", b"PK\x05\x06") else tar_archive
    plan, size = UnpackPlan(limits), 0
    with kind.explained():
        file.seek(0)
        for entry in kind.entries(file, limits):
            plan.add(entry)
            size += entry.size
        plan.check_links()
    into.mkdir(parents=True)
    try:
        _check_room(size, into)
        writer = _Writer(into, limits)
        with kind.explained():
            file.seek(0)
            for entry in kind.entries(file, limits):
                writer.add(entry)
        writer.make_links(plan.links)
    except BaseException:
        delete_folder(into)
        raise
    return Unpacked(plan.files, writer.size)


def _check_room(size: int, folder: Path) -> None:
    """See whether so many bytes fit on the disk: a small archive of sparse files may become large."""
    if size > shutil.disk_usage(folder).free:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))


@dataclass
class _Writer:
    root: Path
    limits: ArchiveLimits
    size: int = 0
    folders: set[str] = field(default_factory=lambda: {""})

    def add(self, entry: Entry) -> None:
        parts = parts_of(entry.path)
        try:
            if entry.kind == "folder":
                self._make_folder(parts)
            elif entry.kind == "file":
                self._make_folder(parts[:-1])
                self._write(entry, self._path(parts))
        except OSError as error:
            raise _explained(entry, error) from None

    def make_links(self, links: dict[str, Entry]) -> None:
        # Hard ones first, while nothing can lead astray.
        for path, entry in sorted(links.items(), key=lambda link: link[1].kind != "same"):
            parts = parts_of(path)
            try:
                self._make_folder(parts[:-1])
                if entry.kind == "same":
                    source = self._path(parts_of(entry.target))
                    os.link(source, self._path(parts), follow_symlinks=False)
                else:
                    os.symlink(entry.target, self._path(parts))
            except OSError as error:
                raise _explained(entry, error) from None

    def _path(self, parts: list[str]) -> str:
        return os.path.join(self.root, *parts)

    def _make_folder(self, parts: list[str]) -> None:
        path = "/".join(parts)
        if path not in self.folders:
            self._make_folder(parts[:-1])
            os.mkdir(self._path(parts))
            self.folders.add(path)

    def _write(self, entry: Entry, path: str) -> None:
        assert entry.open is not None
        Path(path).unlink(missing_ok=True)  # a later one of the same name counts
        mode = 0o755 if entry.mode & 0o111 else 0o644
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
        with open(descriptor, "wb") as file:
            content = entry.open()
            while block := content.read(BLOCK):
                self.size += len(block)
                if self.size > self.limits.size:
                    raise too_large(self.limits)
                file.write(block)


def _explained(entry: Entry, error: OSError) -> Exception:
    if error.errno == errno.ENAMETOOLONG:
        return ArchiveError(f"{shown(entry.path)}: the name is too long", "shorten it")
    return error
