"""What the console shows: applications, instance groups and hosts, in the words of a cluster's console."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from edt_launch.cluster.hosts import is_gpu
from edt_launch.service.states import State
from edt_launch.service.web import wording
from edt_launch.service.web.views.jobs import Column, column

Json = Mapping[str, Any]

PLACES = (
    ("/console/applications", "Applications"),
    ("/console/groups", "Instance groups"),
    ("/console/hosts", "Hosts"),
    ("/console/consumers", "Consumers"),
)
"""Addresses and names of the console's pages."""

FILTERED: Mapping[str, str] = {"text": "Name and ID", "owner": "Submitter", "state": "State"}
"""What a filter may look into, as in the address and as shown."""

COLUMNS: Mapping[str, str] = {
    "Name and ID": "name",
    "Submitter": "owner",
    "Type": "",
    "State": "state",
    "CPU Slots": "",
    "GPU Slots": "size",
    "Priority": "priority",
    "Submitted": "submitted",
    "Ended": "ended",
    "Run Duration": "",
}
"""Columns of applications, and the fields that they are sorted by; empty: not at all."""

NEWEST = "-submitted"
"""The order in which they are unless another one is asked for."""


@dataclass(frozen=True)
class Filter:
    """Which applications are looked for; as in the page's address, empty for all.

    Attributes:
        column: what contains `text`: of `FILTERED`.
        sort: what they are in the order of, with `-` before it for the opposite one.
        after: how many are left out.
    """

    column: str = "text"
    text: str = ""
    sort: str = ""
    after: int = 0

    def address(self) -> str:
        """The page's address."""
        query = urlencode({name: value for name, value in vars(self).items() if value})
        return f"/console/applications?{query}"

    @property
    def order(self) -> str:
        """What they are sorted by."""
        return self.sort or NEWEST

    def rest(self) -> dict[str, str]:
        """Arguments of REST's list of jobs for the same."""
        match self.column:
            case _ if not self.text:
                return {}
            case "state":
                return {"state": ",".join(state for state in State if self.text.lower() in state)}
            case "owner":
                return {"owner_text": self.text}
            case _:
                return {"text": self.text}


@dataclass(frozen=True)
class Application:
    """A job, in the console's words."""

    id: str
    name: str
    owner: str
    type: str
    state: str
    cpus: int
    gpus: int
    priority: int
    submitted: float
    ended: float | None
    run: str

    @classmethod
    def of(cls, job: Json, now: float) -> "Application":
        """That of a job as REST shows it."""
        devices = [device for host in job["hosts"] for device in host["devices"]]
        gpus = sum(map(is_gpu, devices))
        started = job["started"]
        return cls(
            job["id"],
            job["name"],
            job["owner"],
            kind(job),
            str(job["state"]),
            len(devices) - gpus,
            gpus,
            job["priority"],
            job["submitted"],
            job["ended"],
            wording.NONE if started is None else wording.duration((job["ended"] or now) - started),
        )


def kind(job: Json) -> str:
    """How a job is trained: whether its number of workers may change, and whether it has several."""
    if job["min"] < job["max"]:
        return "Elastic"
    return "Single" if job["max"] == 1 else "Distributed"


@dataclass(frozen=True)
class Applications:
    """A page of applications; `next` is the address of the next one, None at the end."""

    address: str
    filter: Filter
    columns: Sequence[Column]
    rows: Sequence[Application]
    next: str | None
    as_json: str
    columns_of_filter: Mapping[str, str]
    title: str = "Applications"
    places: Sequence[tuple[str, str]] = PLACES


def applications(wanted: Filter, jobs: Sequence[Json], after: int | None, now: float) -> Applications:
    """The page of jobs that REST has shown for a filter; `after` is where the next page begins."""
    first = replace(wanted, after=0)
    query = {"all": 1, **wanted.rest(), "sort": wanted.order.removeprefix("-")}
    if wanted.order.startswith("-"):
        query["newest"] = 1
    return Applications(
        wanted.address(),
        wanted,
        [
            column(name, field, wanted.order, lambda sort: replace(first, sort=sort).address())
            for name, field in COLUMNS.items()
        ],
        [Application.of(job, now) for job in jobs],
        None if after is None else replace(wanted, after=after).address(),
        f"/api/v1/jobs?{urlencode(query)}",
        FILTERED,
    )
