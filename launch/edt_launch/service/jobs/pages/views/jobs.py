"""What the page of jobs shows."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any
from urllib.parse import urlencode

from pydantic import BaseModel, ConfigDict, Field

from edt_launch.core.history.failure_text import cause
from edt_launch.service.jobs.schemas import Job
from edt_launch.service.jobs.states import State
from edt_launch.service.web.crumbs import Tab

CHIPS: Mapping[str, str] = {
    "Now": "",
    "Running": "starting,running",
    "Queued": "queued",
    "Paused": "pausing,paused",
    "Failed": "failed",
    "Succeeded": "succeeded",
    "All": "all",
}
"""Names of what is often looked for, and the states that are meant; "": live, or ended in the last hour."""


MAX_WHY = 300
"""Characters of why a job has failed."""


Words = Annotated[str, Field(max_length=1024)]


class Filter(BaseModel):
    """What is looked for; as in the page's address, empty for everything.

    Attributes:
        state: states with commas between, or `all`.
        owner: users with commas between.
        experiment, search: id of one, whose runs or trials are meant.
        last: name of the time in which they were submitted: of `TIMES`.
        sort: what they are in the order of, with `-` before it for the opposite one; empty: the newest first.
        after: where the page goes on, 0 at the beginning.
    """

    model_config = ConfigDict(frozen=True, str_strip_whitespace=True)

    state: Words = ""
    owner: Words = ""
    text: Words = ""
    tag: Words = ""
    host: Words = ""
    experiment: Words = ""
    search: Words = ""
    last: Words = ""
    sort: Words = ""
    after: Annotated[int, Field(ge=0, le=2**53)] = 0

    def address(self, path: str = "/jobs") -> str:
        """The page's address."""
        query = urlencode({name: value for name, value in vars(self).items() if value})
        return f"{path}?{query}" if query else path

    def rest(self, now: float) -> dict[str, str | int]:
        """REST's parameters for the same."""
        states = {"all": {"all": 1}, "": {}}.get(self.state, {"state": self.state})
        own = {name: getattr(self, name) for name in (*FIELDS, "after")}
        own["sort"] = self.sort.removeprefix("-")
        times = {"submitted_since": max(0, int(now - TIMES[self.last]))} if self.last in TIMES else {}
        newest = {"newest": 1} if self.is_descending else {}
        return {**states, **{name: value for name, value in own.items() if value}, **times, **newest}

    @property
    def find(self) -> str:
        """What is in the box of the page: words of a name or id, and `owner:ann` for the other fields."""
        named = [f"{name}:{value}" for name in FIELDS if name != "text" and (value := getattr(self, name))]
        return " ".join(filter(None, [*named, self.text]))

    def found(self, find: str) -> "Filter":
        """The same with what was written in the box instead of its fields."""
        parts = [(part, *part.partition(":")[::2]) for part in find.split()]
        named: dict[str, Any] = {name: value for _, name, value in parts if name in FIELDS and value}
        text = " ".join(part for part, name, _ in parts if name not in named)
        return self.model_copy(update={**dict.fromkeys(FIELDS, ""), "text": text, **named})

    @property
    def command(self) -> str:
        """That shows the same in a terminal, in the order of their submission."""
        states = {"all": ["--all"], "": []}.get(self.state, ["--state", self.state])
        own = [part for name in FIELDS if (value := getattr(self, name)) for part in (f"--{name}", value)]
        times = ["--since", self.last.replace(" ", "")] if self.last else []
        return shlex.join(["edt", "ps", *states, *own, *times])

    @property
    def is_descending(self) -> bool:
        """Whether the highest, or the newest, are the first."""
        return not self.sort or self.sort.startswith("-")


FIELDS = ("owner", "text", "tag", "host", "experiment", "search")
"""Fields of a filter that REST has, too."""

TIMES: Mapping[str, float] = {"1 h": 3600.0, "24 h": 86400.0, "7 d": 604800.0, "30 d": 2592000.0}
"""Names of times in which jobs were submitted, and their seconds."""

COLUMNS: Mapping[str, str] = {
    "Job": "name",
    "State": "state",
    "Workers": "size",
    "Progress": "",
    "Time remaining": "",
    "Owner": "owner",
    "Priority": "priority",
    "Experiment": "",
    "Since": "since",
}
"""Columns of the table, and the fields that they are sorted by; empty: not at all."""


@dataclass(frozen=True)
class Column:
    """A column: the address of its order, None where there is none, and the present one as ARIA has it."""

    name: str
    address: str | None
    order: str


def why(job: Job) -> str:
    """Why a job waits or has failed, as far as the viewer may know that; empty for others."""
    if job.state is State.FAILED:
        return cause(job.failure or "")[:MAX_WHY] or job.reason
    return job.reason if job.state is State.QUEUED else ""


@dataclass(frozen=True)
class JobsView:
    """A page of jobs.

    Attributes:
        chips: links to jobs in some states.
        suggested: what can be written in the box, with a name where it is an id.
        whys: why jobs wait or have failed, by their ids.
        experiments: addresses and names, by the ids of the jobs that are runs of them.
        next: the address of the next page; None at the end.
        error: what is wrong with the filter; empty if nothing is.
    """

    filter: Filter
    times: Sequence[str]
    columns: Sequence[Column]
    jobs: Sequence[Job]
    whys: Mapping[str, str]
    chips: Sequence[Tab]
    suggested: Sequence[tuple[str, str]]
    experiments: Mapping[str, tuple[str, str]]
    address: str
    next: str | None
    as_json: str
    is_filtered: bool
    error: str = ""


def refused(wanted: Filter, error: str) -> JobsView:
    """The page for a filter that makes no sense."""
    return replace(jobs_view(wanted, [], None, 0.0, {}), error=error)


def jobs_view(
    wanted: Filter,
    jobs: Sequence[Job],
    after: int | None,
    now: float,
    experiments: Mapping[str, tuple[str, str]],
    suggested: Sequence[tuple[str, str]] = (),
) -> JobsView:
    """The page of jobs that REST has shown for a filter; `after` is where the next page begins.

    `experiments` are ids and names, by the ids of the jobs that are runs of them.
    """
    first = wanted.model_copy(update={"after": 0})
    chips = [
        Tab(name, first.model_copy(update={"state": state}).address(), state == wanted.state)
        for name, state in CHIPS.items()
    ]
    return JobsView(
        wanted,
        list(TIMES),
        [
            column(name, field, wanted.sort, lambda sort: first.model_copy(update={"sort": sort}).address())
            for name, field in COLUMNS.items()
        ],
        jobs,
        {job.id: said for job in jobs if (said := why(job))},
        chips,
        suggested,
        {job: (f"/experiments/{id_}", name) for job, (id_, name) in experiments.items()},
        wanted.address(),
        None if after is None else wanted.model_copy(update={"after": after}).address(),
        f"/api/v1/jobs?{urlencode(wanted.rest(now))}",
        wanted != Filter(),
    )


def column(name: str, field: str, sort: str, address: Callable[[str], str]) -> Column:
    """A column of a table that is in the order of `sort`; `address` is that of another order."""
    if not field:
        return Column(name, None, "")
    is_this = sort.removeprefix("-") == field
    order = ("descending" if sort.startswith("-") else "ascending") if is_this else ""
    return Column(name, address(f"-{field}" if order == "ascending" else field), order)
