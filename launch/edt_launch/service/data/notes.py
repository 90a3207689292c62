"""What is noted of a data set, in a file beside it: `.edt-<name>`, as JSON.

Numbers are unknown if that file cannot be read or written, whatever is in its place.
"""

import os
from pathlib import Path
from typing import Annotated

import structlog
from pydantic import BaseModel, ConfigDict, Field

from edt_launch.core.files import plain_files
from edt_launch.core.files.atomic import write_atomically
from edt_launch.service.files.archives.deleting import delete_file, delete_folder

log = structlog.get_logger()

MAX_TIME = 2**37
"""A time that can still be shown as a date."""

_Count = Annotated[int, Field(ge=0, lt=2**63)]


class Note(BaseModel):
    """The files and bytes of a data set, None if nobody knows, and when it was changed last."""

    model_config = ConfigDict(strict=True)

    files: _Count | None = None
    size: _Count | None = None
    time: float = Field(ge=0, le=MAX_TIME, allow_inf_nan=False)


def read(path: Path, changed: float) -> Note:
    """The note at a path; if it makes no sense, that the folder was `changed` at that time."""
    try:
        return Note.model_validate_json(plain_files.read(path))
    except (OSError, ValueError):
        return Note(time=min(max(changed, 0.0), float(MAX_TIME)))


def write(path: Path, note: Note) -> Note:
    """Write a note; what is noted now, which is nothing if it cannot be written."""
    try:
        if _is_folder(path):
            delete_folder(path)
        write_atomically(path, note.model_dump_json() + "\n")
    except OSError as error:
        log.warning("the size of a data set cannot be noted", file=str(path), reason=str(error))
        forget(path)
        return Note(time=note.time)
    return note


def forget(path: Path) -> None:
    """Remove a note, whatever it is; if that cannot be done it stays, and the log says so."""
    (delete_folder if _is_folder(path) else delete_file)(path)


def _is_folder(path: Path) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)
