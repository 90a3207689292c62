"""Copying a folder of this machine, so that later edits do not change a queued job."""

import os
import shutil
import stat
from pathlib import Path

from edt_launch.service.archive import MAX_DEPTH, Limits, too_large
from edt_launch.service.deleting import delete_folder
from edt_launch.service.errors import InvalidError, TooLargeError


def copy_folder(source: Path, into: Path, limits: Limits) -> None:
    """Copy a folder, links as links; pipes, sockets and devices are left out. Nothing stays behind on errors.

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
            source, into, symlinks=True, ignore=_Counter(source, limits).left_out, copy_function=shutil.copy
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


class _Counter:
    """Counts what is copied, folder by folder, so that too much of it is not copied at all."""

    def __init__(self, source: Path, limits: Limits) -> None:
        self._source = source
        self._limits = limits
        self._size = 0
        self._count = 0

    def left_out(self, folder: str, names: list[str]) -> list[str]:
        """Names in a folder of what is neither file nor folder nor link."""
        if len(Path(folder).relative_to(self._source).parts) > MAX_DEPTH:
            raise InvalidError(
                f"path: {str(self._source)!r} has more than {MAX_DEPTH} folders within each other",
                "submit the folder of the job's code alone",
            )
        special = []
        for name in names:
            status = os.lstat(os.path.join(folder, name))
            if stat.S_ISREG(status.st_mode):
                self._size += status.st_size
            elif not stat.S_ISDIR(status.st_mode) and not stat.S_ISLNK(status.st_mode):
                special.append(name)
        self._count += len(names)
        if self._size > self._limits.size:
            raise too_large(self._limits)
        if self._count > self._limits.count:
            raise TooLargeError(
                f"path: {str(self._source)!r} has more than {self._limits.count:,} files and folders",
                "submit the folder of the job's code alone",
            )
        return special
