"""The files of a program, for hosts that do not see them: which they are, and one archive of them."""

import gzip
import hashlib
import os
import stat
import tarfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from edt_launch.core.files.ignoring import IGNORE_FILE, IgnoreFileError, ignored
from edt_launch.core.scripts import script_of

MAX_FILES = 20_000
MAX_BYTES = 2**30
"""Of all files together."""


class CodeError(Exception):
    """The files cannot be sent; the text says why, and what to do."""


class Archive(NamedTuple):
    """A gzipped tar."""

    path: Path
    digest: str
    size: int


def folder_of(command: Sequence[str], directory: Path) -> Path | None:
    """The folder that a command needs: of its script or program, or where its module is looked for.

    Args:
        command: of a job's workers.
        directory: where it is run.

    Returns:
        An absolute path; None if the command is found in PATH, and needs no more.
    """
    script = script_of(command) or next((word for word in command[:1] if "/" in word), None)
    words = list(command[1:])
    is_python = Path(command[0]).name.startswith("python")
    if is_python and script == command[0]:
        script = None
    if script is not None:
        path = Path(os.path.abspath(directory / script))
        return path if path.is_dir() else path.parent
    return Path(os.path.abspath(directory)) if is_python and ("-m" in words or "-c" in words) else None


def pack(folder: Path, path: Path) -> Archive:
    """Write an archive of a folder to `path`; the same files make the same bytes.

    Files that `.edtignore` names, or that are left out by default, are not in it, nor are links to elsewhere.

    Raises:
        CodeError: they are too many or too large, or one cannot be read.
    """
    try:
        is_ignored = ignored(folder)
    except IgnoreFileError as error:
        raise CodeError(str(error)) from None
    count = size = 0
    advice = f"name in {folder / IGNORE_FILE} what the program does not need, or share the folder"
    try:
        with (
            path.open("wb") as out,
            gzip.GzipFile(filename="", mode="wb", fileobj=out, compresslevel=1, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as archive,
        ):
            for name in _names(folder, "", is_ignored):
                info = _info(archive, folder, name)
                if info is None:
                    continue
                count, size = count + 1, size + info.size
                if count > MAX_FILES or size > MAX_BYTES:
                    limits = f"{MAX_FILES} files or {MAX_BYTES >> 20} MiB"
                    raise CodeError(f"{folder} has more than {limits}; {advice}")
                if info.isreg():
                    with (folder / name).open("rb") as content:
                        archive.addfile(info, content)
                else:
                    archive.addfile(info)
        with path.open("rb") as file:
            return Archive(path, hashlib.file_digest(file, "sha256").hexdigest(), path.stat().st_size)
    except OSError as error:
        reason = error.strerror or error  # a file that has become shorter has no number
        raise CodeError(f"{error.filename or folder}: {reason}; {advice}") from None


def _names(folder: Path, below: str, is_ignored: Callable[[str], bool]) -> Iterator[str]:
    with os.scandir(folder / below) as found:
        children = sorted(found, key=lambda child: child.name)
    for child in children:
        name = f"{below}{child.name}"
        is_folder = child.is_dir(follow_symlinks=False)
        if is_ignored(f"{name}/" if is_folder else name):
            continue
        yield name
        if is_folder:
            yield from _names(folder, f"{name}/", is_ignored)


def _info(archive: tarfile.TarFile, folder: Path, name: str) -> tarfile.TarInfo | None:
    """A member, without whose it is; None for sockets and the like, and links to elsewhere."""
    path = folder / name
    mode = path.lstat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
        return None
    if stat.S_ISLNK(mode):
        target = os.readlink(path)
        place = os.path.normpath(os.path.join(os.path.dirname(name), target))
        if os.path.isabs(target) or place == ".." or place.startswith("../"):
            return None
    info = archive.gettarinfo(path, name)
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    if info.islnk():  # the second name of a file that is in the archive
        info.type, info.linkname, info.size = tarfile.REGTYPE, "", path.stat().st_size
    return info
