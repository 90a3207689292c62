"""What an archive would become, found out before anything is written: a pure fold over its entries.

So a refusal costs no more than reading the archive, and no name, number, size or link is a surprise later.
"""

import os
from dataclasses import dataclass, field

from edt_launch.service.errors import ArchiveError, TooLargeError
from edt_launch.service.files.archives.entry import MAX_PATH, ArchiveLimits, Entry, too_large

MAX_DEPTH = 100
"""Folders within each other: tools that go through code recurse, and paths end somewhere."""

MAX_NAME = 255
"""Bytes of a file's name; Linux's limit."""

MAX_TARGET, MAX_NAMES = 1024, 30
"""Bytes, and names between slashes, of what a link points to."""

MAX_FOLLOWED = 40
"""Links that are followed to get to the end of one; Linux's limit."""

KINDS = ("file", "folder", "link", "same")


@dataclass
class UnpackPlan:
    """The files, folders and links of an archive.

    Attributes:
        limits: of the archive.
        links: symbolic and hard ones, by their paths.
    """

    limits: ArchiveLimits
    links: dict[str, Entry] = field(default_factory=dict)
    _size: int = 0
    _kinds: dict[str, str] = field(default_factory=dict)
    _ends: dict[str, tuple[list[str], int]] = field(default_factory=dict)

    def add(self, entry: Entry) -> None:
        """Take in the next entry.

        Raises:
            ArchiveError: it cannot be unpacked here.
            TooLargeError: there are too many entries, or too many bytes.
        """
        parts = parts_of(entry.path)
        if entry.kind not in KINDS:
            raise ArchiveError(
                f"{shown(entry.path)} is {entry.kind}",
                "only files, folders and links inside can be sent",
            )
        if not parts:
            if entry.kind == "folder":
                return  # "./"
            raise ArchiveError(f"{shown(entry.path)} is no name", "pack it again")
        self._add_folders_above(parts)
        path = "/".join(parts)
        self._add(path, entry.kind)
        self._size += entry.size
        if self._size > self.limits.size:
            raise too_large(self.limits)
        if entry.kind in ("link", "same"):
            if len(os.fsencode(entry.target)) > MAX_TARGET:
                raise ArchiveError(
                    f"{shown(entry.path)} is a link to a name of more than {MAX_TARGET:,} bytes", "shorten it"
                )
            self.links[path] = entry

    @property
    def files(self) -> int:
        """How many of the entries are files, or hard links to one."""
        return sum(1 for kind in self._kinds.values() if kind in ("file", "same"))

    def check_links(self) -> None:
        """See where all links end.

        Raises:
            ArchiveError: outside the archive, or nowhere.
        """
        for path, entry in self.links.items():
            if entry.kind == "link":
                self._end_of(path)
            elif self._kinds.get("/".join(parts_of(entry.target))) != "file":
                raise ArchiveError(
                    f"{shown(entry.path)} is a hard link to {shown(entry.target)}, which is not there"
                )

    def _add_folders_above(self, parts: list[str]) -> None:
        missing = []
        for depth in range(len(parts) - 1, 0, -1):
            path = "/".join(parts[:depth])
            if self._kinds.get(path) == "folder":
                break
            missing.append(path)
        for path in reversed(missing):
            self._add(path, "folder")

    def _add(self, path: str, kind: str) -> None:
        known = self._kinds.setdefault(path, kind)
        if known != kind or path in self.links:
            raise ArchiveError(f"{shown(path)} is in the archive twice, as different things", "pack it again")
        if len(self._kinds) > self.limits.count:
            raise TooLargeError(
                f"{self.limits.what} has more than {self.limits.count:,} files and folders "
                f"(at {shown(path)})",
                self.limits.advice,
            )

    def _end_of(self, path: str, depth: int = 1) -> tuple[list[str], int]:
        """Where a symbolic link ends, as the system follows it, and how many links are followed."""
        if path in self._ends:
            return self._ends[path]
        entry = self.links[path]
        names = entry.target.split("/")
        if not names[0] or "\0" in entry.target:  # an absolute one, or none
            raise _leads_outside(entry)
        if len(names) > MAX_NAMES:
            raise ArchiveError(
                f"{shown(entry.path)} is a link along {len(names)} names, more than {MAX_NAMES}", "shorten it"
            )
        at, followed = path.split("/")[:-1], 1
        for name in names:
            if name == "..":
                if not at:
                    raise _leads_outside(entry)
                at.pop()
            elif name not in ("", "."):
                at.append(name)
                joined = "/".join(at)
                if joined in self.links and self.links[joined].kind == "link":
                    end, more = self._end_of(joined, depth + 1) if depth <= MAX_FOLLOWED else ([], depth)
                    at, followed = [*end], followed + more
        if followed > MAX_FOLLOWED:
            raise ArchiveError(f"{shown(entry.path)} is a link to more than {MAX_FOLLOWED} links")
        self._ends[path] = at, followed
        return at, followed


def parts_of(path: str) -> list[str]:
    """The names of a path.

    Raises:
        ArchiveError: it leads outside, or is none that can be written.
    """
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or ".." in parts:
        raise ArchiveError(f"{shown(path)} leads outside the archive's folder", "pack it with relative names")
    if "\0" in path or len(os.fsencode(path)) > MAX_PATH:
        raise ArchiveError(f"{shown(path)}: such a name cannot be", "shorten it")
    if any(len(os.fsencode(part)) > MAX_NAME for part in parts):
        raise ArchiveError(f"{shown(path)}: the name is too long", "shorten it")
    if len(parts) > MAX_DEPTH:
        raise ArchiveError(
            f"{shown(path)}: {len(parts)} names within each other, more than {MAX_DEPTH}",
            "leave out folders that are not needed",
        )
    return parts


def shown(path: str) -> str:
    """A path, in a message."""
    return repr(path if len(path) <= 80 else path[:77] + "...")


def _leads_outside(entry: Entry) -> ArchiveError:
    return ArchiveError(
        f"{shown(entry.path)} is a link to {shown(entry.target)}, outside the archive",
        "leave it out, or pack what it points to (tar -h)",
    )
