"""The table of an experiment's runs: its columns, and the addresses of other orders and pages."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any
from urllib.parse import urlencode

from edt_launch.core.history.failure_text import cause
from edt_launch.service.experiments.runs import Best, Shown, Summary
from edt_launch.service.experiments.service import view
from edt_launch.service.jobs.pages.views.jobs import MAX_WHY, Column, column
from edt_launch.service.jobs.states import State
from edt_launch.service.web import wording

FIELDS: Mapping[str, str] = {
    "state": "Status",
    "created": "Submitted",
    "owner": "By",
    "seconds": "Duration",
    "size": "GPUs",
    "hours": "GPU-hours",
    "tags": "Tags",
    "comment": "Comment",
}
"""Columns that every table can have, and their headings."""

DEFAULT = ("state", "created", "owner", "seconds", "hours", "tags")
"""Of these, the columns of a table for which none are chosen; it has those of the metrics, too."""

METRIC, PARAMETER = "metric:", "parameter:"
"""Come before the name of what a column shows."""

MAX_PARAMETERS = 20
"""Differing parameters that can be columns."""

PAGE = 100
"""Runs of a page of the table."""


@dataclass(frozen=True)
class RunTableQuery:
    """What an address asks of the table.

    Attributes:
        find, sort: as `RunQuery` has them.
        columns: those that are shown; empty: the usual ones.
        after: runs before the page.
    """

    find: str = ""
    sort: str = "-created"
    columns: Sequence[str] = ()
    after: int = 0

    def address(self, path: str) -> str:
        """The address of the table on the page of that address."""
        asked = {"find": self.find, "column": self.columns, "after": self.after}
        asked |= {"sort": "" if self.sort == RunTableQuery.sort else self.sort}
        asked = {name: value for name, value in asked.items() if value}
        return f"{path}?{urlencode({'tab': 'runs', **asked}, doseq=True)}"


@dataclass(frozen=True)
class Row:
    """A run in a table.

    Attributes:
        run: as REST answers it.
        why: why it failed, or has no job, as far as the viewer may know that.
        is_own: whether the viewer may fetch its files.
        best: the best runs by each metric.
        parameters: by names, what it was started with.
    """

    run: Mapping[str, Any]
    why: str
    is_own: bool
    best: Mapping[str, Best | None]
    parameters: Mapping[str, str]

    @property
    def is_deleted(self) -> bool:
        """Whether its job is gone."""
        return self.run["job_name"] is None

    @property
    def size(self) -> str:
        """Its GPUs: those that it has, or had on average."""
        run = self.run
        bounds = wording.bounds(run["min"], run["max"], None)
        if run["ended_as"] and run["seconds"]:
            return f"{run['hours'] * 3600 / run['seconds']:.1f} of {bounds} on average"
        return f"{run['size'] or 0} of {bounds}"

    def text(self, column: str) -> str:
        """What is shown of a metric or parameter."""
        if column.startswith(METRIC):
            return precise(self.run["values"].get(column.removeprefix(METRIC), {}).get("last"))
        return self.parameters.get(column.removeprefix(PARAMETER)) or wording.NONE

    def is_best(self, column: str) -> bool:
        """Whether it is the best one by the metric of that column."""
        best = self.best.get(column.removeprefix(METRIC)) if column.startswith(METRIC) else None
        return best is not None and best.run == self.run["id"]


def row(
    shown: Shown, viewer: str | None, summary: Summary, parameters: Mapping[str, str] | None = None
) -> Row:
    """A run as `viewer` sees it; None: an administrator."""
    job, run = shown.job, shown.run
    is_own = viewer in (None, run.owner if job is None else job.owner)
    failure = job.failure if job is not None and job.state is State.FAILED else ""
    reason = run.reason if run.job is None else failure
    return Row(
        view(shown),
        cause(reason)[:MAX_WHY] if is_own else "",
        job is not None and is_own,
        summary.best,
        parameters or {},
    )


@dataclass(frozen=True)
class RunTable:
    """A page of the table.

    Attributes:
        heads: of the columns, that of the name first.
        columns: what is shown, as `FIELDS` and what begins with `METRIC` or `PARAMETER`.
        choices: what can be shown: the column, its heading, whether it is.
        number: of the runs that fit.
        next, previous: addresses of the pages beside this one; empty if there is none.
    """

    asked: RunTableQuery
    heads: Sequence[Column]
    columns: Sequence[str]
    choices: Sequence[tuple[str, str, bool]]
    number: int
    address: str
    next: str
    previous: str


def run_table(
    path: str, asked: RunTableQuery, number: int, metrics: Collection[str], parameters: Collection[str]
) -> RunTable:
    """The page that is asked for, of so many runs.

    Args:
        path: address of the experiment's page.
        asked: columns that there are not, of a metric that no run has any more, say, are left out.
        number: of the runs that fit.
        metrics: those that can be columns.
        parameters: that are not the same in all runs, those that can be columns.
    """
    headings = {
        **FIELDS,
        **{f"{METRIC}{name}": name for name in metrics},
        **{f"{PARAMETER}{name}": name for name in parameters},
    }
    usual = [*DEFAULT, *(f"{METRIC}{name}" for name in metrics)]
    shown = [name for name in headings if name in (asked.columns or usual)]

    def at(after: int, sort: str = asked.sort) -> str:
        return replace(asked, after=after, sort=sort).address(path)

    heads = {"name": "Name", **{name: headings[name] for name in shown}}
    return RunTable(
        asked,
        [column(heading, name, asked.sort, lambda sort: at(0, sort)) for name, heading in heads.items()],
        shown,
        [(name, heading, name in shown) for name, heading in headings.items()],
        number,
        asked.address(path),
        at(asked.after + PAGE) if asked.after + PAGE < number else "",
        at(max(0, asked.after - PAGE)) if asked.after else "",
    )


def ordered(
    ids: Sequence[str], sort: str, summary: Summary, started: Mapping[str, Mapping[str, str]]
) -> Sequence[str]:
    """Ids of runs in the order of a column that is none of the database: those without a value are the last.

    Numbers are before texts.
    """
    column = sort.removeprefix("-")
    _, of, name = column.partition(":")

    def value(id_: str) -> Any:
        if column.startswith(PARAMETER):
            return sortable(started.get(id_, {}).get(name))
        figures = summary.figures.get(id_)
        if figures is None:
            return None
        return figures.values.get(name) if of else getattr(figures, column)

    if not column.startswith((METRIC, PARAMETER)) and column not in ("seconds", "hours"):
        return ids
    found = [(id_, value(id_)) for id_ in ids]
    known = [(isinstance(value, str), value, id_) for id_, value in found if value is not None]
    known.sort(key=lambda one: one[:2], reverse=sort.startswith("-"))
    return [*(id_ for *_, id_ in known), *(id_ for id_, value in found if value is None)]


def sortable(text: str | None) -> float | str | None:
    """A parameter's value, as a number if it is one."""
    try:
        found = float(text or "")
    except ValueError:
        return text
    return found if isfinite(found) else text


def precise(value: float | None) -> str:
    """A value that was reported."""
    return wording.NONE if value is None else f"{value:.5g}"
