"""Whether checkpoints are whole, by what their manifests say of their files."""

import hashlib
import json
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

from edt_launch.core.files.plain_files import open_file, read

MANIFEST = "manifest.json"

BLOCK = 2**20
"""Bytes that are hashed at a time."""


class Wholeness(StrEnum):
    """What is known of a checkpoint."""

    COMPLETE = "complete"
    """Its files have the sizes that they should have."""
    WHOLE = "whole"
    """They have the checksums, too."""
    DAMAGED = "damaged"
    """A file is missing, or another one than it should be."""
    UNKNOWN = "unknown"
    """There is no manifest that says what there should be: another library has written it, say."""


def quick_look(folder: Path) -> Wholeness:
    """`COMPLETE`, `DAMAGED` or `UNKNOWN`, by sizes alone."""
    return _look(folder, is_thorough=False)


def thorough_look(folder: Path) -> Wholeness:
    """`WHOLE`, `DAMAGED` or `UNKNOWN`; all of it is read for that."""
    return _look(folder, is_thorough=True)


def _look(folder: Path, *, is_thorough: bool) -> Wholeness:
    try:
        files = list(_files(json.loads(read(folder / MANIFEST))))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return Wholeness.UNKNOWN
    is_right = all(_is_right(folder / name, size, digest, is_thorough) for name, size, digest in files)
    good = Wholeness.WHOLE if is_thorough else Wholeness.COMPLETE
    return (good if is_right else Wholeness.DAMAGED) if files else Wholeness.UNKNOWN


def _files(manifest: Any) -> Iterator[tuple[str, int, str]]:
    """Names, sizes and SHA-256 of files; `ValueError` and the like where the manifest makes no sense."""
    for name, about in manifest["files"].items():
        if not isinstance(name, str) or "/" in name or name in ("", ".", ".."):
            raise ValueError(name)
        yield name, int(about["bytes"]), str(about["sha256"])


def _is_right(path: Path, size: int, digest: str, is_thorough: bool) -> bool:
    try:
        with open_file(path) as file:
            if file.seek(0, 2) != size:
                return False
            if not is_thorough:
                return True
            file.seek(0)
            found = hashlib.sha256()
            while block := file.read(BLOCK):
                found.update(block)
            return found.hexdigest() == digest
    except OSError:
        return False
