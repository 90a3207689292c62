"""Copying a folder of this machine, so that later edits do not change a queued job."""

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

from edt_launch.core.files.plain_files import open_file
from edt_launch.service.errors import InvalidError, TooLargeError
from edt_launch.service.files.archives.deleting import delete_folder
from edt_launch.service.files.archives.entry import ArchiveLimits, too_large
from edt_launch.service.files.archives.plan import MAX_DEPTH

_COPIED = (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)


def copy_folder(
    source: Path, into: Path, limits: ArchiveLimits, is_ignored: Callable[[str], bool] = lambda _: False
) -> None:
    """Copy a folder, links as links; pipes, sockets and devices are left out. Nothing stays behind on errors.

    So is what `is_ignored` names, a path below the folder that ends with a slash if it is a folder's.

    Raises:
        InvalidError: it is no folder that can be read, it is too deep, or `into` is inside it.
        TooLargeError: it exceeds the limits.
        OSError: the disk is full, say.
    """
    if not source.is_absolute() or not source.is_dir():
        raise InvalidError(
            f"path: {str(source)!r} is no folder of the machine the service runs on",
            "give an absolute path there",
        )
    if into.resolve().is_relative_to(source.resolve()):
        raise InvalidError(
            f"path: {str(source)!r} contains the service's own folder",
            "submit the folder of the job's code alone",
        )
    try:
        shutil.copytree(
            source,
            into,
            symlinks=True,
            ignore=_counted(source, limits, is_ignored),
            copy_function=_copy,
        )
    except shutil.Error as error:
        delete_folder(into)
        name, _, problem = error.args[0][0]
        raise InvalidError(
            f"path: {name!r} cannot be copied: {problem}", "make it readable, or leave it out"
        ) from None
    except BaseException:
        delete_folder(into)
        raise


def _copy(source: str, target: str) -> None:
    """Copy a file, or a link as one; of a job's folder nothing that a link in its path leads to."""
    if os.path.islink(source):
        os.symlink(os.readlink(source), target)
        return
    with open_file(Path(source)) as file, open(target, "wb") as copy:
        shutil.copyfileobj(file, copy)
        os.fchmod(copy.fileno(), stat.S_IMODE(os.fstat(file.fileno()).st_mode))


def _counted(
    source: Path, limits: ArchiveLimits, is_ignored: Callable[[str], bool]
) -> Callable[[str, list[str]], list[str]]:
    """Names in a folder of what is neither file nor folder nor link; raises when in all there is too much."""
    size = count = 0

    def left_out(folder: str, names: list[str]) -> list[str]:
        nonlocal size, count
        below = Path(folder).relative_to(source)
        if len(below.parts) > MAX_DEPTH:
            raise InvalidError(
                f"path: {str(source)!r} has more than {MAX_DEPTH} folders within each other",
                "submit the folder of the job's code alone",
            )
        every = {name: os.lstat(os.path.join(folder, name)) for name in names}
        paths = {n: f"{(below / n).as_posix()}{'/' * stat.S_ISDIR(one.st_mode)}" for n, one in every.items()}
        status = {name: one for name, one in every.items() if not is_ignored(paths[name])}
        size += sum(one.st_size for one in status.values() if stat.S_ISREG(one.st_mode))
        count += len(status)
        if size > limits.size:
            raise too_large(limits)
        if count > limits.count:
            raise TooLargeError(
                f"path: {str(source)!r} has more than {limits.count:,} files and folders",
                "submit the folder of the job's code alone",
            )
        kept = {name for name, one in status.items() if stat.S_IFMT(one.st_mode) in _COPIED}
        return [name for name in names if name not in kept]

    return left_out
