"""What is in a folder, however deep: `os.walk` recurses."""

import os
from collections.abc import Iterator
from pathlib import Path


def walk(folder: Path) -> Iterator[Path]:
    """All that is below a folder, by name, and what is beside a folder before what is in it.

    Links are not followed, not even `folder` itself. What cannot be read is left out: it is gone
    meanwhile, as old checkpoints go, or deeper than paths reach.
    """
    pending = [] if folder.is_symlink() else [folder]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
            folders = [Path(entry.path) for entry in found if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue
        yield from (Path(entry.path) for entry in found)
        pending += reversed(folders)
