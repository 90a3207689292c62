"""What is in a folder, however deep: `os.walk` recurses."""

import contextlib
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

MAX_SORTED_ENTRIES = 10_000
"""Entries of a folder that are sorted at a time: of a larger one, parts come one after the other."""

MAX_NAMES = 10_000
"""Entries of a folder that are listed at most."""


def names(folder: Path, most: int | None = None) -> list[str]:
    """What is in a folder, by name: `most` entries, or `MAX_NAMES`; of what is no folder, nothing."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in islice(entries, MAX_NAMES if most is None else most))
    except OSError:
        return []


def walk(folder: Path) -> Iterator[Path]:
    """All that is below a folder, by name, and what is beside a folder before what is in it.

    Links are not followed, not even `folder` itself. What cannot be read is left out: it is gone
    meanwhile, as old checkpoints go, or deeper than paths reach.
    """
    pending = [] if folder.is_symlink() else [folder]
    while pending:
        folders: list[Path] = []
        for path, is_folder in _entries(pending.pop()):
            if is_folder:
                folders.append(path)
            yield path
        pending += reversed(folders)


def _entries(folder: Path) -> Iterator[tuple[Path, bool]]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        while part := sorted(islice(entries, MAX_SORTED_ENTRIES), key=lambda entry: entry.name):
            yield from [(Path(entry.path), entry.is_dir(follow_symlinks=False)) for entry in part]
