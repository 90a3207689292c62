"""The files of a submission: one is the model, and the others go into the folder that its script runs in."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import BinaryIO

from edt_launch.service.errors import InvalidError, TooLargeError

ARCHIVES = (".tar", ".tar.gz", ".tgz")

LARGEST = 2**24
"""Bytes of all files beside the model."""

NAME_LIMIT = 200
"""Bytes of a file's name."""


@dataclass(frozen=True)
class Part:
    """A file as it was sent; it can be sought."""

    name: str
    file: BinaryIO


def model_of(parts: Sequence[Part], main: str) -> Part | None:
    """The tar; without one the script that `main` names, else what comes first. None if nothing was sent."""
    tars = [part for part in parts if part.name.endswith(ARCHIVES)]
    scripts = [part for part in parts if part.name == PurePosixPath(main).name]
    return next(iter([*tars, *scripts, *parts]), None)


def beside(parts: Sequence[Part], model: Part | None) -> Mapping[str, bytes]:
    """The content of all others, by their names.

    Raises:
        InvalidError: a name that no file can have, or that two have.
        TooLargeError: together they are too large.
    """
    found: dict[str, bytes] = {}
    left = LARGEST
    for part in (each for each in parts if each is not model):
        if not _is_plain(part.name):
            raise InvalidError(f"file {part.name!r:.80} has a name that no file can have", "rename it")
        if part.name in found or (model is not None and part.name == model.name):
            raise InvalidError(f"two files are called {part.name!r:.80}", "rename one, or send a tar")
        part.file.seek(0)
        found[part.name] = part.file.read(left + 1)
        left -= len(found[part.name])
        if left < 0:
            raise TooLargeError(f"the files beside the model have more than {LARGEST:,} bytes", "send a tar")
    return found


def _is_plain(name: str) -> bool:
    try:
        size = len(os.fsencode(name))
        name.encode()
    except UnicodeEncodeError:
        return False
    return 0 < size <= NAME_LIMIT and name not in (".", "..") and "/" not in name and "\0" not in name
