"""A data set: what is known of it, and what of it changes with a file."""

import os
import stat
from dataclasses import dataclass, replace

from edt_launch.service.errors import ConflictError, NotFoundError, TooLargeError
from edt_launch.service.files.archives.entry import ArchiveLimits
from edt_launch.service.names import TAG

USERS = "users"
"""The folder of users' data sets, below the folder of data."""

NAME = TAG
"""What data sets are called."""


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

    def with_file(
        self, before: os.stat_result | None, size: int, limits: ArchiveLimits, now: float
    ) -> "DataSet":
        """It with one more file, or another one in the place of that `before`.

        Raises:
            TooLargeError: that is more than is allowed.
        """
        files = _sum(self.files, 1 if before is None else 0)
        total = _sum(self.size, size - (0 if before is None else _counted(before)))
        if (total or 0) > limits.size or (files or 0) > limits.count:
            raise TooLargeError(
                f"{self.path} would have {_shown(files)} files and {_shown(total)} bytes; allowed are "
                f"{limits.count:,} and {limits.size:,}",
                limits.advice,
            )
        return replace(self, files=files, size=total, time=now)

    def without_file(self, file: os.stat_result, now: float) -> "DataSet":
        """It after a file was deleted."""
        files = _sum(self.files, -1 if stat.S_ISREG(file.st_mode) else 0)
        return replace(self, files=files, size=_sum(self.size, -_counted(file)), time=now)


def missing(owner: str, name: str) -> NotFoundError:
    """The error about a data set that is not there."""
    return NotFoundError(
        f"there is no data set {owner}/{name}", "GET /api/v1/datasets lists them: `edt data ls`"
    )


def taken(owner: str, name: str) -> ConflictError:
    """The error about a data set that is there already."""
    return ConflictError(f"there is a data set {owner}/{name} already", "replace it, or choose another name")


def _counted(file: os.stat_result) -> int:
    """The bytes that go with a file: others of the same content, hard links, keep them."""
    return file.st_size if stat.S_ISREG(file.st_mode) and file.st_nlink == 1 else 0


def _sum(number: int | None, change: int) -> int | None:
    """A number after a change, where jobs may have changed more than was counted."""
    return None if number is None else max(0, number + change)


def _shown(number: int | None) -> str:
    return "an unknown number of" if number is None else f"{number:,}"
