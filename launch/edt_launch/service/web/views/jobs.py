"""What the page of jobs shows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from edt_launch.service.states import State
from edt_launch.service.web import wording

Json = Mapping[str, Any]

CHIPS: Mapping[str, str] = {
    "Now": "",
    "Running": "starting,running",
    "Waiting": "queued",
    "Paused": "pausing,paused",
    "Failed": "failed",
    "Succeeded": "succeeded",
    "All": "all",
}
"""Names of what is often looked for, and the states that are meant; "": live, or ended in the last hour."""


@dataclass(frozen=True)
class Filter:
    """What is looked for; as in the page's address, empty for everything.

    Attributes:
        state: states with commas between, or `all`.
        search: id of one, whose trials are meant.
        last: name of the time in which they were submitted: of `TIMES`.
        sort: what they are in the order of, with `-` before it for the opposite one; empty: the newest first.
        after: where the page goes on, 0 at the beginning.
    """

    state: str = ""
    owner: str = ""
    text: str = ""
    host: str = ""
    search: str = ""
    last: str = ""
    sort: str = ""
    after: int = 0

    def address(self, path: str = "/jobs") -> str:
        """The page's address."""
        query = urlencode({name: value for name, value in vars(self).items() if value})
        return f"{path}?{query}" if query else path

    @property
    def rest_address(self) -> str:
        """That of the same as JSON."""
        states = {"all": {"all": 1}, "": {}}.get(self.state, {"state": self.state})
        rest = {name: getattr(self, name) for name in ("owner", "text", "host", "search", "after")}
        rest["sort"] = self.sort.removeprefix("-")
        newest = {"newest": 1} if self.is_descending else {}
        query = {**states, **{name: value for name, value in rest.items() if value}, **newest}
        return f"/api/v1/jobs?{urlencode(query)}"

    @property
    def is_descending(self) -> bool:
        """Whether the highest, or the newest, are the first."""
        return not self.sort or self.sort.startswith("-")


TIMES: Mapping[str, float] = {"1 h": 3600.0, "24 h": 86400.0, "7 d": 604800.0, "30 d": 2592000.0}
"""Names of times in which jobs were submitted, and their seconds."""

COLUMNS: Mapping[str, str] = {
    "Job": "name",
    "Owner": "owner",
    "State": "state",
    "Size": "size",
    "of": "",
    "Share": "share",
    "Progress": "",
    "Left": "",
    "Priority": "priority",
    "Since": "submitted",
}
"""Columns of the table, and the fields that they are sorted by; empty: not at all."""


@dataclass(frozen=True)
class Column:
    """A column: the address of its order, None where there is none, and the present one as ARIA has it."""

    name: str
    address: str | None
    order: str


@dataclass(frozen=True)
class Chip:
    """A link to jobs in some states."""

    name: str
    address: str
    is_chosen: bool


@dataclass(frozen=True)
class JobRow:
    """A job in a list; `why` says why it waits or has failed, and is empty for others."""

    id: str
    name: str
    owner: str
    state: str
    size: str
    bounds: str
    share: str
    progress: str
    eta: str
    priority: int
    since: float
    why: str

    @classmethod
    def of(cls, job: Json) -> "JobRow":
        """That of a job as REST shows it."""
        eta = job["eta"]
        return cls(
            id=job["id"],
            name=job["name"],
            owner=job["owner"],
            state=str(job["state"]),
            size=wording.size(job["size"], job["target"]),
            bounds=wording.bounds(job["min"], job["max"], job["allowed"]),
            share=wording.number(job["share"], 1),
            progress=wording.progress(job["step"], job["total_steps"]),
            eta=wording.NONE if eta is None else wording.duration(eta),
            priority=job["priority"],
            since=job["ended"] or job["started"] or job["submitted"],
            why=job["reason"] if job["state"] in (State.QUEUED, State.FAILED) else "",
        )


@dataclass(frozen=True)
class JobsView:
    """A page of jobs; `next` is the address of the next page, None at the end."""

    filter: Filter
    times: Sequence[str]
    columns: Sequence[Column]
    rows: Sequence[JobRow]
    chips: Sequence[Chip]
    address: str
    next: str | None
    as_json: str
    is_filtered: bool


def jobs_view(wanted: Filter, jobs: Sequence[Json], after: int | None) -> JobsView:
    """The page of jobs that REST has shown for a filter; `after` is where the next page begins."""
    first = replace(wanted, after=0)
    chips = [
        Chip(name, replace(first, state=state).address(), state == wanted.state)
        for name, state in CHIPS.items()
    ]
    return JobsView(
        wanted,
        list(TIMES),
        [
            column(name, field, wanted.sort, lambda sort: replace(first, sort=sort).address())
            for name, field in COLUMNS.items()
        ],
        [JobRow.of(job) for job in jobs],
        chips,
        wanted.address(),
        None if after is None else replace(wanted, after=after).address(),
        wanted.rest_address,
        wanted != Filter(),
    )


def column(name: str, field: str, sort: str, address: Callable[[str], str]) -> Column:
    """A column of a table that is in the order of `sort`; `address` is that of another order."""
    if not field:
        return Column(name, None, "")
    is_this = sort.removeprefix("-") == field
    order = ("descending" if sort.startswith("-") else "ascending") if is_this else ""
    return Column(name, address(f"-{field}" if order == "ascending" else field), order)
