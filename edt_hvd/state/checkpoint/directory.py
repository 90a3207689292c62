"""The folder of all checkpoints of a state: their names, the newest of them, and which are kept."""

import itertools
import os
import re
import shutil
import socket
from collections.abc import Iterable
from pathlib import Path

import psutil

_NAME = re.compile(r"step-(\d{8,})")
_TEMPORARY = re.compile(r"\.step-\d+\.(?P<host>.*)\.(?P<pid>\d+)\.\d+")
_serial = itertools.count()

ABANDONED = 3600.0
"""Seconds without a write after which the writer on another host is taken for gone."""


def path_of(folder: Path, commits: int) -> Path:
    """Where the checkpoint after so many commits is."""
    return folder / f"step-{commits:08}"


def temporary(path: Path) -> Path:
    """A name beside `path` with the host and process that write there."""
    return path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}.{next(_serial)}")


def put_in_place(beside: Path, path: Path) -> None:
    """Rename `beside` to `path`. A folder that is there already goes; anything else is quarantined.

    Raises:
        OSError: that is not possible.
    """
    if not _is_folder(path) and os.path.lexists(path):
        quarantine(path)
    if path.exists():
        old = temporary(path)
        path.rename(old)
        beside.rename(path)
        shutil.rmtree(old)
    else:
        beside.rename(path)


def newest_first(folder: Path) -> list[Path]:
    """All folders in `folder` that are named as checkpoints; whether they are whole is not looked at.

    Raises:
        OSError: the folder is there but cannot be read.
    """
    try:
        named = {int(match[1]): path for path in folder.iterdir() if (match := _NAME.fullmatch(path.name))}
    except FileNotFoundError:
        return []
    found = {commits: path for commits, path in named.items() if path.is_dir()}
    return [found[commits] for commits in sorted(found, reverse=True)]


def quarantine(path: Path) -> Path:
    """Rename what is no checkpoint, or a damaged one: it is neither looked for nor removed any more.

    Returns:
        Its new path.

    Raises:
        OSError: that is not possible.
    """
    aside = path.with_name(f"damaged-{path.name}")
    numbers = itertools.count(2)
    while os.path.lexists(aside):
        aside = path.with_name(f"damaged-{path.name}-{next(numbers)}")
    return path.rename(aside)


def outdated(names: Iterable[str], written: str, keep: int) -> set[str]:
    """Which checkpoints to remove: all but the newest `keep`.

    Args:
        names: of all checkpoints.
        written: name of the one that has been written, which stays.
        keep: how many to keep, at least 1.
    """
    numbers = {name: int(match[1]) for name in names if (match := _NAME.fullmatch(name))}
    newest = sorted(numbers, key=numbers.__getitem__)[-keep:]
    return numbers.keys() - {*newest, written}


def tidy(written: Path, keep: int, now: float) -> None:
    """Remove what `outdated` names, and what writers that are gone have left.

    Args:
        written: the checkpoint that has been written.
        keep: how many to keep, at least 1.
        now: seconds since the epoch.

    Raises:
        OSError: something cannot be removed; the rest is.
    """
    folder = written.parent
    names = [path.name for path in folder.iterdir() if _is_folder(path)]
    left = {name for name in names if _TEMPORARY.fullmatch(name) and _is_left(folder / name, now)}
    refusal: OSError | None = None
    for name in outdated(names, written.name, keep) | left:
        try:
            shutil.rmtree(folder / name)
        except FileNotFoundError:  # somebody else removes it, too
            continue
        except OSError as error:
            refusal = error
    if refusal is not None:
        raise refusal


def _is_folder(path: Path) -> bool:
    """Whether it is a folder itself; what else has a checkpoint's name is none of ours."""
    return path.is_dir() and not path.is_symlink()


def _is_left(path: Path, now: float) -> bool:
    """Whether a temporary checkpoint's writer is gone: on another host, if it has long written nothing."""
    match = _TEMPORARY.fullmatch(path.name)
    assert match is not None
    if match["host"] == socket.gethostname():
        pid = int(match["pid"])
        return pid == os.getpid() or not psutil.pid_exists(pid)
    try:
        return now - max(each.stat().st_mtime for each in (path, *path.iterdir())) > ABANDONED
    except OSError:  # it is just being renamed or removed
        return False
