"""Which runs of an experiment are looked for, and in which order."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, Text, and_, case, cast, func, or_, select

from edt_launch.service.db.tables import jobs, runs

DELETED = "deleted"
"""State of a run whose job is gone."""

_JOINED = runs.outerjoin(jobs, jobs.c.id == runs.c.job)

_NAME = func.coalesce(func.nullif(jobs.c.name, ""), jobs.c.id, runs.c.name)
_WITHOUT_JOB = and_(runs.c.place.is_not(None), runs.c.job.is_(None))
_STATE = func.coalesce(
    cast(jobs.c.state, Text), case((_WITHOUT_JOB, cast(runs.c.state, Text)), else_=DELETED)
)
_COLUMNS: Mapping[str, ColumnElement[Any]] = {
    "name": _NAME,
    "state": _STATE,
    "owner": runs.c.owner,
    "size": jobs.c.size,
    "tags": func.nullif(cast(jobs.c.tags, Text), "[]"),
    "comment": func.nullif(jobs.c.comment, ""),
}


@dataclass(frozen=True)
class RunQuery:
    """Runs of an experiment that are looked for, and their order.

    Attributes:
        experiment: its id.
        find: words of a run's name, comment or job, and `state:`, `owner:` and `tag:` before other words.
        sort: a column of the database, with `-` before it for the highest first; else the newest is first.
    """

    experiment: str
    find: str = ""
    sort: str = ""

    def statement(self) -> Select[Any]:
        """The ids of those that fit, in their order; those without a value are the last."""
        fits = [_fits(part) for part in self.find.lower().split()]
        query = select(runs.c.id).select_from(_JOINED).where(runs.c.experiment == self.experiment, *fits)
        name, is_descending = self.sort.removeprefix("-"), self.sort.startswith("-")
        if name == "created":
            return query.order_by(runs.c.number.desc() if is_descending else runs.c.number)
        if (by := _COLUMNS.get(name)) is not None:
            query = query.order_by((by.desc() if is_descending else by.asc()).nulls_last())
        return query.order_by(runs.c.number.desc())


def _fits(part: str) -> ColumnElement[bool]:
    """Whether a run has one of the words that are looked for."""
    name, colon, value = part.partition(":")
    if colon and name == "state":
        return _STATE.in_([value])
    if colon and name == "owner":
        return func.lower(runs.c.owner).in_([value])
    if colon and name == "tag":
        return cast(jobs.c.tags, Text).icontains(f'"{value}"', autoescape=True)
    texts = (_NAME, func.coalesce(runs.c.job, runs.c.id), jobs.c.comment)
    return or_(*(text.icontains(part, autoescape=True) for text in texts))
