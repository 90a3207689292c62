"""What a job has made: its model and logs, and what it has written into the folder that it was submitted as.

The files of the submitted code are noted when the job is submitted. Later, what is not among them, or has
another size or time of change, is the job's own work.
"""

import json
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from edt_launch.core.files import plain_files
from edt_launch.core.files.atomic import write_atomically
from edt_launch.core.files.walking import walk
from edt_launch.service.app.home import JobDir
from edt_launch.service.errors import NotFoundError, TooLargeError
from edt_launch.service.files.archives import packing
from edt_launch.service.files.archives.packing import Member

MODEL, LOG, WORK = "model", "log", "work"
"""Names of the three parts."""
MAX_FILES = 100_000
"""Files and folders that are packed at most."""
_CACHES = "__pycache__"
_MAX_NOTED = 64 * 2**20
"""Bytes of the list of submitted files that are read; a job may have replaced it."""


class ResultFile(NamedTuple):
    """A file that a job has made: its name, its size in bytes, and when it was changed last."""

    name: str
    size: int
    time: float


def note_submitted(folder: JobDir) -> None:
    """Write down which files were submitted.

    Raises:
        OSError: the disk is full, say.
    """
    found = {name: [status.st_size, status.st_mtime_ns] for name, status in _files(folder.code)}
    write_atomically(folder.submitted, json.dumps(found))


def remove_made(copy: Path, folder: JobDir) -> None:
    """Remove from a copy of a job's folder what was not submitted. What the job has changed stays so.

    Raises:
        OSError: a file cannot be removed.
    """
    submitted = submitted_files(folder)
    if submitted:  # where the list is missing, nobody can say
        for name, _ in list(_files(copy)):
            if name not in submitted:
                (copy / name).unlink()


def members(folder: JobDir) -> Iterator[Member]:
    """All that a job has made, with its name in an archive."""
    yield from packing.members(MODEL, folder.output.model)
    yield from packing.members(LOG, folder.output.log)
    submitted = submitted_files(folder)
    for name, status in _files(folder.code):
        if submitted.get(name) != [status.st_size, status.st_mtime_ns]:
            yield Member(f"{WORK}/{name}", folder.code / name)


def choose(found: Iterable[Member], names: Sequence[str]) -> list[Member]:
    """The members of these names, and what is in those that are folders; without names, all.

    Raises:
        NotFoundError: there is nothing of one of the names.
        TooLargeError: there are too many.
    """
    wanted = [name.strip("/") for name in names]
    chosen = list(
        islice((member for member in found if not wanted or _is_in(member.name, wanted)), MAX_FILES + 1)
    )
    if len(chosen) > MAX_FILES:
        raise TooLargeError(f"there are more than {MAX_FILES:,} files", "choose some of them by name")
    for name in wanted:
        if not any(_is_in(member.name, [name]) for member in chosen):
            raise NotFoundError(
                f"the job has made no {name[:200]!r}",
                "`edt results --list` and GET /jobs/{id}/files list what there is",
            )
    return chosen


def listed(found: Iterable[Member]) -> Iterator[ResultFile]:
    """The files among the members."""
    for member in found:
        try:
            status = member.path.lstat()
        except OSError:  # gone meanwhile
            continue
        if stat.S_ISREG(status.st_mode):
            yield ResultFile(_text(member.name), status.st_size, status.st_mtime)


def _is_in(name: str, wanted: Sequence[str]) -> bool:
    text = _text(name)
    return any(text == each or text.startswith(f"{each}/") for each in wanted)


def _text(name: str) -> str:
    """A name as JSON can have it."""
    return os.fsencode(name).decode(errors="replace")


def _files(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Files and links below a folder, by their paths in it, without what Python keeps for itself."""
    for path in walk(folder):
        relative = path.relative_to(folder)
        try:
            status = path.lstat()
        except OSError:  # gone meanwhile
            continue
        if not stat.S_ISDIR(status.st_mode) and _CACHES not in relative.parts:
            yield relative.as_posix(), status


def submitted_files(folder: JobDir) -> dict[str, list[int]]:
    """Size and time of change of what was submitted, by names.

    Nothing where the list is missing, and without what is spoilt in it, so that this counts as made.
    """
    try:
        found = json.loads(plain_files.read(folder.submitted, _MAX_NOTED))
    except (OSError, ValueError, RecursionError):
        return {}
    entries = found.items() if isinstance(found, dict) else ()
    return {name: entry for name, entry in entries if _is_noted(entry)}


def _is_noted(entry: Any) -> bool:
    return isinstance(entry, list) and [type(number) for number in entry] == [int, int]
