"""Copying a folder of this machine, so that later edits do not change a queued job."""

import os
import shutil
import stat
from pathlib import Path

from edt_launch.service.archive import Limits, too_large
from edt_launch.service.errors import InvalidError, TooLargeError


def copy_folder(source: Path, into: Path, limits: Limits) -> None:
    """Copy a folder, links as links; pipes, sockets and devices are left out. Nothing stays behind on errors.

    Raises:
        InvalidError: it is no folder that can be read, or `into` is inside it.
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
    counted = {"size": 0, "count": 0}

    def left_out(folder: str, names: list[str]) -> list[str]:
        special = []
        for name in names:
            status = os.lstat(os.path.join(folder, name))
            if stat.S_ISREG(status.st_mode):
                counted["size"] += status.st_size
            elif not stat.S_ISDIR(status.st_mode) and not stat.S_ISLNK(status.st_mode):
                special.append(name)
        counted["count"] += len(names)
        if counted["size"] > limits.size:
            raise too_large(limits)
        if counted["count"] > limits.count:
            raise TooLargeError(
                f"path: {str(source)!r} has more than {limits.count:,} files and folders",
                "submit the folder of the job's code alone",
            )
        return special

    try:
        shutil.copytree(source, into, symlinks=True, ignore=left_out, copy_function=shutil.copy)
    except shutil.Error as error:
        shutil.rmtree(into, ignore_errors=True)
        name, _, problem = error.args[0][0]
        raise InvalidError(
            f"path: {name!r} cannot be copied: {problem}", "make it readable, or leave it out"
        ) from None
    except BaseException:
        shutil.rmtree(into, ignore_errors=True)
        raise
