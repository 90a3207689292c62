"""Folders deeper than paths and recursion reach."""

import os
from pathlib import Path

DEPTH = 1100
"""So deep that Python does not recurse, and that paths of `NAME` are too long."""

NAME = "dir"


def deepen(folder: Path, depth: int = DEPTH) -> None:
    """Make folders within each other, each with a file beside the next one."""
    folder.mkdir(parents=True, exist_ok=True)
    at = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=at))
        os.mkdir(NAME, dir_fd=at)
        inner = os.open(NAME, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.close(at)
