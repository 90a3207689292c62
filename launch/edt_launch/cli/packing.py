"""Which files of a folder belong to a job's code, and the submission that they are sent in.

`.edtignore` at the top of the folder says what stays out, in the syntax of `.gitignore`; what nobody wants is
out by default, and a line such as `!runs/` takes it back in.
"""

import gzip
import json
import os
import secrets
import stat
import sys
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import IO, Any, cast

from edt_launch.cli.client.transport import Writer
from edt_launch.cli.errors import MistakenError
from edt_launch.cli.screen import bar, note, plural
from edt_launch.core.files.ignoring import IGNORE_FILE, IgnoreFileError, ignored, left_out_by_default
from edt_launch.core.text.byte_sizes import byte_size

NO_FILE = " (neither file nor folder)"
MANY = 20000  # files that are too many to be code


@dataclass(frozen=True)
class Entry:
    """A file, folder or link: its path in the archive, and its size in bytes."""

    path: str
    size: int


@dataclass(frozen=True)
class Code:
    """What is to be sent, folders before their content; links to elsewhere and the like are left out."""

    folder: Path
    entries: tuple[Entry, ...]
    left_out: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(entry.size for entry in self.entries)

    @property
    def largest(self) -> list[tuple[str, int]]:
        """The three largest things at the top of the folder, and their sizes."""
        sizes: Counter[str] = Counter()
        for entry in self.entries:
            sizes["".join(entry.path.partition("/")[:2])] += entry.size
        return [(top, size) for top, size in sizes.most_common(3) if size]


def collect(folder: Path) -> Code:
    """Find what belongs to the code in `folder`."""
    if not folder.is_dir():
        raise MistakenError(f"{folder} is not a folder", "name the folder of the code with --code")
    try:
        is_ignored = ignored(folder)
    except IgnoreFileError as error:
        raise MistakenError(error.text, error.advice) from None
    code = _collected(folder, is_ignored, MANY)
    if len(code.entries) > MANY:
        raise MistakenError(
            f"{folder} has more than {MANY} files; the last one was {code.entries[-1].path}",
            f"change to the folder of the code, or name in {IGNORE_FILE} what is to stay out",
        )
    return code


def everything(folder: Path) -> Code:
    """All that is in `folder`, but for links to elsewhere and the like."""
    return _collected(folder, lambda path: False, None)


def _collected(folder: Path, is_ignored: Callable[[str], bool], most: int | None) -> Code:
    """What is in a folder; one more than `most` entries if there are more."""
    entries: list[Entry] = []
    left_out: list[str] = []
    for path, status in _walk(folder, "", is_ignored):
        kind = stat.S_IFMT(status.st_mode)
        if kind == stat.S_IFLNK and not _stays_inside(folder, path):
            left_out.append(f"{path} -> {os.readlink(folder / path)}")
        elif kind in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
            entries.append(Entry(path, status.st_size if kind == stat.S_IFREG else 0))
        else:
            left_out.append(f"{path}{NO_FILE}")
        if most is not None and len(entries) > most:
            break
    return Code(folder, tuple(entries), tuple(left_out))


def how_to_send(code: Code, path: str) -> str:
    """What to do to have a file of the code's folder sent that is not among its entries."""
    for part in (path, *map(str, PurePath(path).parents)):
        if any(one.startswith(f"{part} -> ") for one in code.left_out):
            return f"{part} is a link to elsewhere: copy what it leads to there"
        if f"{part}{NO_FILE}" in code.left_out:
            return f"{part} is no file: put one there"
    if (name := left_out_by_default(path)) is not None:
        return f"{name} is left out by default: take it in with a line !{name} in {IGNORE_FILE}"
    return f"take it out of {IGNORE_FILE}"


def write(
    code: Code,
    file: Writer,
    on_file: Callable[[Entry], None] = lambda entry: None,
    *,
    is_compressed: bool = True,
) -> None:
    """Write the archive, a tar that may be gzipped, piece by piece; the same files make the same bytes.

    Raises:
        MistakenError: a file cannot be read, or changes meanwhile.
    """
    out = cast("IO[bytes]", file)
    with (
        _compressing(out) if is_compressed else nullcontext(out) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as archive,
    ):
        for entry in code.entries:
            on_file(entry)
            _add(archive, code.folder, entry)


def _compressing(out: IO[bytes]) -> gzip.GzipFile:
    return gzip.GzipFile(filename="", mode="wb", fileobj=out, compresslevel=1, mtime=0)


def _add(archive: tarfile.TarFile, folder: Path, entry: Entry) -> None:
    path = folder / entry.path
    try:
        info = archive.gettarinfo(path, entry.path)
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        if info.islnk():  # the second name of a file that is in the archive: sent again, as a file
            info.type, info.linkname, info.size = tarfile.REGTYPE, "", path.stat().st_size
        if info.isreg():
            with path.open("rb") as content:
                _add_file(archive, info, content)
        else:
            archive.addfile(info)
    except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> MistakenError:
    return MistakenError(
        f"{path}: {error.strerror}", f"make it readable, or leave it out (of code: name it in {IGNORE_FILE})"
    )


def _add_file(archive: tarfile.TarFile, info: tarfile.TarInfo, content: IO[bytes]) -> None:
    info.size = os.fstat(content.fileno()).st_size
    try:
        archive.addfile(info, content)
    except OSError as error:
        if error.errno is not None:
            raise
        raise MistakenError(
            f"{info.name} became shorter while it was read",
            f"try again, or leave it out (of code: name it in {IGNORE_FILE})",
        ) from None


def _walk(
    folder: Path, below: str, is_ignored: Callable[[str], bool]
) -> Iterator[tuple[str, os.stat_result]]:
    try:
        with os.scandir(folder / below) as found:
            children = sorted(found, key=lambda child: child.name)
    except OSError as error:
        raise _unreadable(folder / below, error) from None
    for child in children:
        path = f"{below}{child.name}"
        is_folder = child.is_dir(follow_symlinks=False)
        if is_ignored(f"{path}/" if is_folder else path):
            continue
        try:
            path.encode()
        except UnicodeEncodeError:
            raise MistakenError(f"{folder / below} has a file whose name is no UTF-8", "rename it") from None
        yield path, child.stat(follow_symlinks=False)
        if is_folder:
            yield from _walk(folder, f"{path}/", is_ignored)


def _stays_inside(folder: Path, path: str) -> bool:
    target = os.readlink(folder / path)
    if os.path.isabs(target):
        return False
    place = os.path.normpath(os.path.join(os.path.dirname(path), target))  # nothing is resolved
    return place != ".." and not place.startswith("../")


class Submission:
    """A multipart body of a job's properties and its code, if the service does not have that already.

    The archive is made while it is sent, so it needs no room anywhere.
    """

    def __init__(self, spec: Mapping[str, Any], code: Code | None) -> None:
        self._spec = spec
        self._code = code
        self._boundary = f"edt-{secrets.token_hex(16)}"
        self.content_type = f"multipart/form-data; boundary={self._boundary}"

    def write_to(self, file: Writer) -> None:
        """Write it."""
        self._start(file, 'name="spec"', "application/json")
        file.write(json.dumps(self._spec).encode())
        if self._code is not None:
            self._start(file, 'name="code"; filename="code.tar.gz"', "application/gzip")
            write_with_bar(self._code, file)
        file.write(f"\r\n--{self._boundary}--\r\n".encode())

    def _start(self, file: Writer, disposition: str, kind: str) -> None:
        file.write(
            f"\r\n--{self._boundary}\r\nContent-Disposition: form-data; {disposition}\r\n"
            f"Content-Type: {kind}\r\n\r\n".encode()
        )


LARGE = 50_000_000
"""Bytes from which on the size is worth a remark and a bar."""


def write_with_bar(code: Code, file: Writer, *, is_compressed: bool = True) -> None:
    """Write the archive; on a terminal, a bar shows how much of a large one is sent."""
    if code.size >= LARGE and sys.stderr.isatty():
        write(code, file, _progress(code.size), is_compressed=is_compressed)
        sys.stderr.write("\r\x1b[K")
    else:
        write(code, file, is_compressed=is_compressed)


def _progress(total: int) -> Callable[[Entry], None]:
    """A bar on a terminal, while much is sent: called with each file before that is sent."""
    done, shown = 0, -1

    def draw(entry: Entry) -> None:
        nonlocal done, shown
        percent = 100 * done // max(total, 1)
        if percent != shown:
            shown = percent
            sys.stderr.write(f"\r{bar(percent / 100, 30)} {percent:3} % of {byte_size(total)} \x1b[K")
            sys.stderr.flush()
        done += entry.size

    return draw


def tell(code: Code, what: str = "code") -> None:
    """Say what is about to be sent, and what is not."""
    files = sum(1 for entry in code.entries if entry.size) or len(code.entries)
    note(f"{what}: {plural(files, 'file')}, {byte_size(code.size)}, from {code.folder}")
    if code.size >= LARGE and what == "code":
        largest = ", ".join(f"{name} {byte_size(count)}" for name, count in code.largest)
        note(f"      most of it: {largest}; name in {IGNORE_FILE} what the job does not need")
    for path in code.left_out[:5]:
        note(f"      left out: {path}")
    if len(code.left_out) > 5:
        note(f"      left out: {len(code.left_out) - 5} more")
