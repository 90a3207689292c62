"""The tabs of a job's page: each makes its view from the answers of REST."""

import csv
import io
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import BaseModel, Field

from edt_launch.core.files.growing_file import last_lines
from edt_launch.core.history.event_codec import read_line
from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.errors import InvalidError
from edt_launch.service.files import log_search, service
from edt_launch.service.files.log_query import ABSENT, Level, LogQuery, find_lines
from edt_launch.service.files.results import submitted_files
from edt_launch.service.files.series import LOSS
from edt_launch.service.jobs.pages.views.job_tabs import definition, events, logs, monitor, results, size
from edt_launch.service.jobs.pages.views.lives import lives
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.resize_reasons import explained as explained_pauses
from edt_launch.service.jobs.schemas import Job
from edt_launch.service.jobs.service import explained
from edt_launch.service.names import PLAIN

MAX_EVENTS = 100
"""Events that are shown."""

REACH = 2**18
"""Bytes at the end of a log, or of the events, that are looked at."""

AROUND = 2**13
"""Bytes of a log before a place that is shown, and after it."""

LAUNCHER = "launcher"
"""Stands for the launcher where a rank may be given."""

Json = dict[str, Any]


class TabQuery(BaseModel):
    """What an address asks of a job's page, and of the tab that it shows."""

    tab: Literal["", "monitor", "size", "logs", "events", "results", "definition"] = ""
    rank: str = Field("", pattern=f"^([0-9]{{0,6}}|{LAUNCHER})$")
    text: str = Field("", max_length=256, pattern=f"^{PLAIN}$")
    level: Level = ""
    since: str = Field("", max_length=64)
    until: str = Field("", max_length=64)
    wrap: str = Field("", pattern="^0?$")
    at: int | None = Field(None, ge=0, le=2**53)
    after: int = Field(0, ge=0, le=2**53)
    name: list[service.ValueName] = Field([], max_length=service.MAX_VALUES)
    x: str = Field("step", pattern="^(step|training|clock)$")
    log: str = Field("", pattern="^1?$")
    check: str = Field("", max_length=32)
    smooth: str = Field("0", pattern=r"^0(\.[0-9]{1,2})?$")

    @property
    def log_query(self) -> LogQuery:
        """What is searched for in the log; raises `InvalidError`."""
        return LogQuery(
            text=self.text.strip(),
            rank=int(self.rank) if self.rank and self.rank != LAUNCHER else None,
            after=self.after,
            level=self.level,
            since=_seconds("From", self.since),
            until=_seconds("Until", self.until),
            launcher=self.rank == LAUNCHER,
        )


TabQueryDep = Annotated[TabQuery, Query()]


async def body(
    context: Context, user: UserRecord, job: JobRecord, shown: Job, tab: str, asked: TabQuery
) -> object:
    """The view of a tab; `shown` is the job as REST shows it."""
    if tab == "size":
        return size.size(await explained(context, user, job))
    make = {
        "monitor": _monitor,
        "logs": _logs,
        "events": _events,
        "results": _results,
        "definition": _definition,
    }
    return await context.reads.run(user.name, partial(make[tab], context, user, shown, asked))


def names_of(course: Json, asked: Sequence[str]) -> list[str]:
    """The values that are plotted: those asked for, else the loss, else the first one reported."""
    return list(asked) or [LOSS if LOSS in course["names"] else next(iter(course["names"]), LOSS)]


def course_of(context: Context, job_id: str, asked: Sequence[str]) -> tuple[Json, list[str]]:
    """A job's course, and the values of it that are plotted."""
    path = context.home.job(job_id).output.events
    course = context.series_cache.columns(path, asked, monitor.POINTS)
    names = names_of(course, asked)
    return (
        course
        if set(names) <= course["values"].keys()
        else context.series_cache.columns(path, names, monitor.POINTS)
    ), names


def csv_of(context: Context, job_id: str, asked: Sequence[str]) -> str:
    """The points of a job's plots, a line each after one with their names."""
    course, names = course_of(context, job_id, asked)
    fields = ("time", "training", "step", "size", "throughput")
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow([*fields, *(_harmless(name) for name in names)])
    rows.writerows(
        zip(*(course[name] for name in fields), *(course["values"][name] for name in names), strict=True)
    )
    return text.getvalue()


def _harmless(name: str) -> str:
    """A name that no spreadsheet takes for a formula."""
    return f"'{name}" if name.startswith(("=", "+", "-", "@")) else name


def _monitor(context: Context, user: UserRecord, job: Job, asked: TabQuery) -> monitor.Monitor:
    course, names = course_of(context, job.id, asked.name)
    return monitor.monitor(job.id, course, names, asked.x, is_log=bool(asked.log), smooth=asked.smooth)


def _logs(context: Context, user: UserRecord, job: Job, asked: TabQuery) -> logs.Logs:
    path, wanted = context.home.job(job.id).launcher_log, asked.log_query
    error, found = "", None
    try:
        if not wanted.is_empty:
            found = find_lines(context, user, job.id, wanted)
    except InvalidError as refused:
        error = refused.message
    excerpt = _end(path, wanted.rank) if asked.at is None else _around(path, wanted.rank, asked.at)
    return logs.logs(job, wanted, excerpt, found, wraps=not asked.wrap, error=error)


def _end(path: Path, rank: int | None) -> logs.Excerpt:
    if rank is None:
        return logs.Excerpt.of(*_last(path, logs.TAIL))
    return logs.Excerpt.of(*_last(path, REACH), rank=rank).end(logs.TAIL)


def _around(path: Path, rank: int | None, at: int) -> logs.Excerpt:
    reach = AROUND if rank is None else REACH
    try:
        start, lines = log_search.lines_at(path, at, reach, reach)
    except ABSENT:
        start, lines = 0, []
    around = logs.Excerpt.of(start, lines, rank=rank)
    return replace(around, at=at, earlier=max(0, at - 2 * reach), later=at + 2 * reach)


def _events(context: Context, user: UserRecord, job: Job, asked: TabQuery) -> events.Events:
    path = context.home.job(job.id).output.events
    found = list(filter(None, map(read_line, _last(path, REACH)[1])))
    now = None if job.ended else context.clock()
    lived = context.history_cache.read(path, lambda history: lives(history, now))
    pauses = context.series_cache.columns(path, (), monitor.POINTS)["pauses"]
    pauses = explained_pauses(pauses, context.store.history.newest(job.id))
    return events.events(pauses, lived, events.happened(found, MAX_EVENTS))


def _results(context: Context, user: UserRecord, job: Job, asked: TabQuery) -> results.Results:
    checkpoints = service.list_checkpoints(context, user, job.id)["checkpoints"]
    checked = {asked.check: service.checked(context, user, job.id, asked.check)} if asked.check else {}
    return results.results(job.id, service.list_files(context, user, job.id), checkpoints, checked)


def _definition(context: Context, user: UserRecord, job: Job, asked: TabQuery) -> definition.Definition:
    noted = submitted_files(context.home.job(job.id))
    return definition.definition(job, {name: size for name, (size, _) in noted.items()})


def _last(path: Path, lines: int) -> tuple[int, list[bytes]]:
    try:
        return last_lines(path, lines, REACH)
    except ABSENT:
        return 0, []


def _seconds(field: str, text: str) -> float | None:
    """The time of a field, which is in UTC; None for an empty one."""
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is not None:
        raise InvalidError(f"{field}: {text!r} is no time", "write one such as 2026-03-01T12:30, in UTC")
    return max(0.0, time.replace(tzinfo=UTC).timestamp())
