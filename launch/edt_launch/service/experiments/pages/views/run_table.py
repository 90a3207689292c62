"""The table of an experiment's runs: its columns, their order, and which runs are in it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any
from urllib.parse import urlencode

from edt_launch.service.jobs.pages.views.jobs import Column, column
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

NAME = "name"
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
        find: words of a run's name, job or comment, and `state:`, `owner:` and `tag:` before other words.
        sort: a column, with `-` before it for the highest first.
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
        asked |= {"sort": "" if self.sort == USUAL.sort else self.sort}
        asked = {name: value for name, value in asked.items() if value}
        return f"{path}?{urlencode({'tab': 'runs', **asked}, doseq=True)}"


USUAL = RunTableQuery()


@dataclass(frozen=True)
class TableRun:
    """A run as the table has it.

    Attributes:
        run: as REST answers it.
        parameters: by names, those that are not the same in all runs.
    """

    run: Mapping[str, Any]
    parameters: Mapping[str, str | None]

    @property
    def name(self) -> str:
        """That of its job, or else its own."""
        return str(self.run["job_name"] or self.run["name"])

    def value(self, column: str) -> Any:
        """What it is sorted by: numbers before texts, None last."""
        if column == NAME:
            return self.name
        if column.startswith(METRIC):
            return self.run["values"].get(column.removeprefix(METRIC), {}).get("last")
        if column.startswith(PARAMETER):
            return sortable(self.parameters.get(column.removeprefix(PARAMETER)))
        if column == "tags":
            return ", ".join(self.run["tags"]) or None
        found = self.run[column] if column in FIELDS else None
        return None if found == "" else found

    def text(self, column: str) -> str:
        """What is shown of a metric or parameter."""
        if column.startswith(METRIC):
            return precise(self.value(column))
        return self.parameters.get(column.removeprefix(PARAMETER)) or wording.NONE


@dataclass(frozen=True)
class RunTable:
    """A page of the table.

    Attributes:
        heads: of the columns, that of the name first.
        columns: what is shown, as `FIELDS` and what begins with `METRIC` or `PARAMETER`.
        choices: what can be shown: the column, its heading, whether it is.
        runs: of this page.
        number: of the runs that fit.
        best: by metrics, the id of the best run.
        next, previous: addresses of the pages beside this one; empty if there is none.
    """

    asked: RunTableQuery
    heads: Sequence[Column]
    columns: Sequence[str]
    choices: Sequence[tuple[str, str, bool]]
    runs: Sequence[TableRun]
    number: int
    best: Mapping[str, str | None]
    address: str
    next: str
    previous: str

    def is_best(self, run: Mapping[str, Any], column: str) -> bool:
        """Whether a run is the best one by the metric of that column."""
        return column.startswith(METRIC) and self.best.get(column.removeprefix(METRIC)) == run["id"]


def run_table(
    path: str,
    asked: RunTableQuery,
    runs: Sequence[TableRun],
    best: Mapping[str, str | None],
    parameters: Sequence[str],
) -> RunTable:
    """The page that is asked for.

    Args:
        path: address of the experiment's page.
        asked: columns that there are not, of a metric that no run has any more, say, are left out. A page
            after the last one is the last one.
        runs: all of them, the newest first.
        best: the metrics, and the id of the best run for each.
        parameters: that are not the same in all runs, those that can be columns.
    """
    headings = {
        **FIELDS,
        **{f"{METRIC}{name}": name for name in best},
        **{f"{PARAMETER}{name}": name for name in parameters},
    }
    usual = [*DEFAULT, *(f"{METRIC}{name}" for name in best)]
    shown = [name for name in headings if name in (asked.columns or usual)]
    fitting = _sorted([run for run in runs if _fits(run, asked.find)], asked.sort)
    last = max(0, len(fitting) - 1) // PAGE * PAGE
    asked = replace(asked, after=min(asked.after, last))
    first = replace(asked, after=0)

    def sorted_by(sort: str) -> str:
        return replace(first, sort=sort).address(path)

    end = asked.after + PAGE
    before = replace(asked, after=max(0, asked.after - PAGE))
    return RunTable(
        asked,
        [
            column(heading, name, asked.sort, sorted_by)
            for name, heading in [(NAME, "Name"), *((name, headings[name]) for name in shown)]
        ],
        shown,
        [(name, heading, name in shown) for name, heading in headings.items()],
        fitting[asked.after : end],
        len(fitting),
        best,
        asked.address(path),
        replace(asked, after=end).address(path) if end < len(fitting) else "",
        before.address(path) if asked.after else "",
    )


def _sorted(runs: Iterable[TableRun], sort: str) -> list[TableRun]:
    name, is_descending = sort.removeprefix("-"), sort.startswith("-")
    values = [(run.value(name), run) for run in runs]
    known = [(value, run) for value, run in values if value is not None]

    def key(known: tuple[Any, TableRun]) -> tuple[bool, Any]:
        return isinstance(known[0], str), known[0]

    ordered = [run for _, run in sorted(known, key=key, reverse=is_descending)]
    return [*ordered, *(run for value, run in values if value is None)]


def _fits(listed: TableRun, find: str) -> bool:
    """Whether a run has every one of the words."""
    run = listed.run
    said = f"{listed.name} {run['job'] or run['id']} {run['comment']}".lower()
    for part in find.lower().split():
        name, colon, value = part.partition(":")
        named = {"state": str(run["state"]), "owner": run["owner"].lower()}
        if colon and name == "tag":
            fits = value in [tag.lower() for tag in run["tags"]]
        elif colon and name in named:
            fits = value == named[name]
        else:
            fits = part in said
        if not fits:
            return False
    return True


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
