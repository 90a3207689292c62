"""Which jobs are looked for, and in what order."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, Text, cast, func, or_, select

from edt_launch.service.db.paging import page
from edt_launch.service.db.tables import jobs, runs
from edt_launch.service.jobs.states import State

_ORDERS: Mapping[str, ColumnElement[Any]] = {
    **{name: jobs.c[name] for name in ("number", "name", "owner", "state", "size", "share", "priority")},
    **{name: jobs.c[name] for name in ("submitted", "ended")},
    "since": func.coalesce(jobs.c.ended, jobs.c.started, jobs.c.submitted),
}

SORTS = tuple(_ORDERS)
"""What jobs can be in the order of; `since`: when they ended, or else started, or else were submitted."""


@dataclass(frozen=True)
class JobQuery:
    """Jobs that fit every one of these; by default all of them, 1,000 at most.

    Attributes:
        states: those in one of these; None for all.
        ended_since: those, too, that have ended since then, whatever `states` says.
        owners: those of one of these users; None for all.
        owner_text: those whose owner's name contains it, in whatever case.
        text: those whose name or comment contains it, in whatever case, or whose id begins with it.
        tag: those that have it, in whatever case.
        host: those that have devices of it.
        experiment: the runs of one, by its id.
        search: the jobs of one's trials, by its id.
        submitted_since: those submitted since then.
        sort: one of `SORTS`; jobs without a value are the last.
        newest: in the opposite order.
        after: those whose number is higher; with `newest`, lower, unless it is 0; with another order than
            that of their numbers, how many to leave out.
        limit: so many at most; None for all.
    """

    states: Collection[State] | None = None
    ended_since: float | None = None
    owners: Collection[str] | None = None
    owner_text: str = ""
    text: str = ""
    tag: str | None = None
    host: str | None = None
    experiment: str | None = None
    search: str | None = None
    submitted_since: float | None = None
    sort: str = "number"
    newest: bool = False
    after: int = 0
    limit: int | None = 1000

    @property
    def is_by_number(self) -> bool:
        """Whether they are in the order of their submission, or in the opposite one."""
        return self.sort == "number"

    def statement(self) -> Select[Any]:
        """The rows of those that fit, and one more than `limit`."""
        limit = None if self.limit is None else self.limit + 1
        found = select(jobs).where(*self._conditions())
        if self.is_by_number:
            return page(found, jobs.c.number, self.after, limit, self.newest)
        order = _ORDERS[self.sort].desc() if self.newest else _ORDERS[self.sort]
        found = found.order_by(order.nulls_last()).offset(self.after)
        return page(found, jobs.c.number, 0, limit, self.newest)

    def _conditions(self) -> list[ColumnElement[bool]]:
        columns = jobs.c
        found: list[ColumnElement[bool]] = []
        if self.states is not None:
            fits = columns.state.in_(sorted(self.states))
            found.append(fits if self.ended_since is None else or_(fits, columns.ended >= self.ended_since))
        if self.owners is not None:
            found.append(columns.owner.in_(sorted(self.owners)))
        if self.owner_text:
            found.append(columns.owner.icontains(self.owner_text, autoescape=True))
        if self.text:
            named = [one.icontains(self.text, autoescape=True) for one in (columns.name, columns.comment)]
            found.append(or_(*named, columns.id.startswith(self.text, autoescape=True)))
        if self.tag is not None:
            found.append(cast(columns.tags, Text).icontains(f'"{self.tag}"', autoescape=True))
        if self.host is not None:
            found.append(cast(columns.held, Text).contains(f'["{self.host}",', autoescape=True))
        within = [one for one in (self.experiment, self.search) if one is not None]
        found += [columns.id.in_(select(runs.c.job).where(runs.c.experiment == one)) for one in within]
        if self.submitted_since is not None:
            found.append(columns.submitted >= self.submitted_since)
        return found
