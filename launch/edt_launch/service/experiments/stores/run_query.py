"""Which runs of an experiment are looked for, in which order, and what all of them have come to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import (
    JSON,
    ColumnElement,
    Float,
    Select,
    Text,
    and_,
    case,
    cast,
    column,
    func,
    literal,
    or_,
    select,
    true,
)

from edt_launch.service.db.tables import jobs, runs
from edt_launch.service.experiments.outcomes import RunOutcome

DELETED = "deleted"
"""State of a run whose job is gone."""

METRIC = "metric:"
"""Comes before the name of a value in the name of its column."""

JOINED = runs.outerjoin(jobs, jobs.c.id == runs.c.job)

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
_VALUES = func.json_each(runs.c.outcome["values"]).table_valued("key", column("value", JSON), name="each")
_LAST = _VALUES.c.value["last"].as_float()


@dataclass(frozen=True)
class RunQuery:
    """Runs of an experiment that are looked for, and their order.

    Attributes:
        experiment: its id.
        find: words of a run's name, comment or job, and `state:`, `owner:` and `tag:` before other words.
        sort: a column, with `-` before it for the highest first; of others, the newest run is the first.
        live: what has come so far of runs that have not ended, by their ids; of others, that is stored.
    """

    experiment: str
    find: str = ""
    sort: str = ""
    live: Mapping[str, RunOutcome] = field(default_factory=dict)

    def statement(self) -> Select[Any]:
        """The ids of those that fit, in their order; those without a value are the last."""
        fits = [_fits(part) for part in self.find.lower().split()]
        query = select(runs.c.id).select_from(JOINED).where(runs.c.experiment == self.experiment, *fits)
        name, is_descending = self.sort.removeprefix("-"), self.sort.startswith("-")
        if name == "created":
            return query.order_by(runs.c.number.desc() if is_descending else runs.c.number)
        if (by := self._column(name)) is not None:
            query = query.order_by((by.desc() if is_descending else by.asc()).nulls_last())
        return query.order_by(runs.c.number.desc())

    def _column(self, name: str) -> ColumnElement[Any] | None:
        if name in ("seconds", "hours"):
            now = {id_: getattr(outcome, name) for id_, outcome in self.live.items()}
            return _with_live(now, func.coalesce(runs.c.outcome[name].as_float(), 0.0))
        if name.startswith(METRIC):
            metric = name.removeprefix(METRIC)
            lasts = {id_: outcome.last(metric) for id_, outcome in self.live.items()}
            last = select(_LAST).select_from(_VALUES).where(_VALUES.c.key == metric)
            return _with_live(lasts, last.correlate(runs).scalar_subquery())
        return _COLUMNS.get(name)


def _with_live(values: Mapping[str, float | None], stored: ColumnElement[Any]) -> ColumnElement[Any]:
    known = {id_: literal(value, Float) for id_, value in values.items() if value is not None}
    return case(known, value=runs.c.id, else_=stored) if known else stored


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


def totals(experiment: str) -> Select[*tuple[Any, ...]]:
    """How many runs there are, and the seconds and device-hours of those whose outcome is stored."""
    seconds, hours = (func.sum(runs.c.outcome[name].as_float()) for name in ("seconds", "hours"))
    query = select(func.count(), func.coalesce(seconds, 0.0), func.coalesce(hours, 0.0))
    return query.where(runs.c.experiment == experiment)


def extremes(experiment: str) -> Select[*tuple[Any, ...]]:
    """Runs with the two lowest and the highest last value of each name, among stored outcomes.

    Of equal values, that of the newest run is the first. Id and number of the run, name, value.
    """

    def rank(order: ColumnElement[Any]) -> ColumnElement[int]:
        return func.row_number().over(partition_by=_VALUES.c.key, order_by=(order, runs.c.number.desc()))

    ranked = (
        select(
            runs.c.id,
            runs.c.number,
            _VALUES.c.key,
            _LAST.label("last"),
            rank(_LAST).label("low"),
            rank(_LAST.desc()).label("high"),
        )
        .select_from(runs.join(_VALUES, true()))
        .where(runs.c.experiment == experiment, _LAST.is_not(None))
        .subquery()
    )
    found = ranked.c
    best = or_(found.low <= 2, found.high == 1)  # two, since nothing is best alone
    return select(found.id, found.number, found.key, found.last).where(best)
