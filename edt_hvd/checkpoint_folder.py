"""The folder of all checkpoints of a state: their names, the newest of them, and which are kept."""

import contextlib
import itertools
import os
import re
import shutil
import socket
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from pathlib import Path

_NAME = re.compile(r"step-(\d{8,})")
_TEMPORARY = re.compile(r"\.step-\d+\.(?P<host>.*)\.(?P<pid>\d+)\.\d+")
_serial = itertools.count()


def path_of(folder: Path, commits: int) -> Path:
    """Where the checkpoint after so many commits is."""
    return folder / f"step-{commits:08}"


def temporary(path: Path) -> Path:
    """A name beside `path` that tells who is writing there."""
    return path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}.{next(_serial)}")


def put_in_place(beside: Path, path: Path) -> None:
    """Rename `beside` to `path`; what is there already goes.

    Raises:
        OSError: that is not possible.
    """
    if path.exists():
        old = temporary(path)
        path.rename(old)
        beside.rename(path)
        shutil.rmtree(old)
    else:
        beside.rename(path)


def newest_first(folder: Path) -> list[Path]:
    """All checkpoints in `folder`, by their names; whether they are whole is not looked at.

    Raises:
        OSError: the folder is there but cannot be read.
    """
    try:
        found = {int(match[1]): path for path in folder.iterdir() if (match := _NAME.fullmatch(path.name))}
    except FileNotFoundError:
        return []
    return [found[commits] for commits in sorted(found, reverse=True)]


def outdated(
    names: Iterable[str], written: str, keep: int, damaged: AbstractSet[str] = frozenset()
) -> set[str]:
    """Which checkpoints to remove: all but the newest `keep` that are not known to be damaged.

    Args:
        names: of all checkpoints.
        written: name of the one that has been written, which stays.
        keep: how many to keep, at least 1.
        damaged: names of those that training could not go on from.
    """
    numbers = {name: int(match[1]) for name in names if (match := _NAME.fullmatch(name))}
    whole = sorted(numbers.keys() - (damaged - {written}), key=numbers.__getitem__)
    return numbers.keys() - {*whole[-keep:], written}


def tidy(written: Path, keep: int, damaged: AbstractSet[str] = frozenset()) -> None:
    """Remove what `outdated` names, and what writers that are gone have left.

    Raises:
        OSError: something cannot be removed.
    """
    folder = written.parent
    names = [path.name for path in folder.iterdir()]
    left = {name for name in names if (match := _TEMPORARY.fullmatch(name)) and not _is_alive(match)}
    for name in outdated(names, written.name, keep, damaged) | left:
        with contextlib.suppress(FileNotFoundError):  # somebody else removes it, too
            shutil.rmtree(folder / name)


def _is_alive(match: re.Match[str]) -> bool:
    """Whether another process of this host is writing there."""
    pid = int(match["pid"])
    if match["host"] != socket.gethostname() or pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
