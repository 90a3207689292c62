"""What is in an archive, whatever its format, and how much of it is taken."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from edt_launch.service.errors import TooLargeError

MAX_PATH = 4096
"""Bytes of a path inside an archive, and of what a link points to."""


@dataclass(frozen=True)
class ArchiveLimits:
    """What an archive may become: bytes of all files, and the number of files, folders and links.

    `what` it is, and the `advice` to those whose archive is too large, are for messages.
    """

    size: int
    count: int
    what: str = "the code"
    advice: str = "leave out what the job does not need, or read data from a shared folder"


class Source(Protocol):
    """A file's content."""

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes; none at the end."""


@dataclass(frozen=True)
class Entry:
    """Something in an archive.

    `kind` is "file", "folder", "link" (symbolic) or "same" (a hard link); any other is refused, by that name.
    `target` is what a link points to; `mode` and `size`, in bytes, are a file's; `open` gives its content.
    """

    path: str
    kind: str
    mode: int = 0
    size: int = 0
    target: str = ""
    open: Callable[[], Source] | None = None


def too_large(limits: ArchiveLimits) -> TooLargeError:
    """The error about too many bytes."""
    return TooLargeError(f"{limits.what} has more than {limits.size:,} bytes when unpacked", limits.advice)
