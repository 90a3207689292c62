"""Searches in the logs of a job."""

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from edt_launch.core.files.growing_file import recent_lines
from edt_launch.core.files.plain_files import NoFileError, open_file
from edt_launch.core.history import log_times
from edt_launch.core.history.log_times import LogRange
from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.app.home import JobDir
from edt_launch.service.errors import InvalidError
from edt_launch.service.files import log_search

MAX_SHOWN = 1000
"""Characters that are given of a line that was searched for."""


ABSENT = (FileNotFoundError, NotADirectoryError, PermissionError, NoFileError)
"""What reading a log raises that is not there, or with which the job has done as it likes."""


Level = Literal["", "warning", "error"]
"""The least level of lines that are looked for; empty for any."""


@dataclass(frozen=True)
class LogQuery:
    """What is searched for in a log; `since` and `until` are seconds since 1970.

    `launcher`: only what `edt-launch` itself has printed.
    """

    text: str = ""
    rank: int | None = None
    after: int = 0
    level: Level = ""
    since: float | None = None
    until: float | None = None
    launcher: bool = False

    @property
    def has_bounds(self) -> bool:
        """Whether only lines of some time are wanted."""
        return self.since is not None or self.until is not None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is searched for."""
        return not (self.text or self.level or self.launcher or self.has_bounds)


def find_lines(context: Context, user: UserRecord, job_id: str, wanted: LogQuery) -> dict[str, Any]:
    """The answer of a search in a log, like `output_schemas.LogHits`."""
    files = context.home.job(context.job_of(job_id, user).id)
    part = _part(files, wanted)
    after = max(wanted.after, part.start)
    try:
        found, following = log_search.search(
            files.launcher_log,
            wanted.text,
            after,
            level=wanted.level,
            until=part.end,
            rank=wanted.rank,
            only_launcher=wanted.launcher,
        )
    except ABSENT:
        return {"hits": [], "next": None}
    hits = [{"offset": one.offset, "text": one.line.decode(errors="replace")[:MAX_SHOWN]} for one in found]
    return {"hits": hits, "next": following}


def _part(files: JobDir, wanted: LogQuery) -> LogRange:
    since, until = wanted.since, wanted.until
    if not wanted.has_bounds:
        return LogRange(0, None)
    if since is not None and until is not None and since >= until:
        raise InvalidError(
            f"since, {_utc(since)}, is not before until, {_utc(until)}", "give the earlier time first"
        )
    path = files.launcher_log
    try:
        found = log_times.part(recent_lines(files.output.log_times), path.name, since, until)
    except ABSENT:
        found = None
    if found is None and _has_lines(path):
        raise InvalidError(
            f"nothing says when the lines of {path.name} were printed", "search without since and until"
        )
    return found or LogRange(0, None)


def _utc(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="seconds")


def _has_lines(path: Path) -> bool:
    try:
        with open_file(path) as file:
            return os.fstat(file.fileno()).st_size > 0
    except ABSENT:
        return False
