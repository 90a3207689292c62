"""What the console shows: applications, instance groups and hosts, in the words of a cluster's console."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from edt_launch.cluster.hosts import is_gpu
from edt_launch.cluster.nvidia import Load
from edt_launch.service.cluster.pages.views.pool import drain_action
from edt_launch.service.jobs.pages.views.jobs import Column, column
from edt_launch.service.jobs.records import HolderRecord
from edt_launch.service.jobs.states import State
from edt_launch.service.web import wording

Json = Mapping[str, Any]

PLACES = (
    ("/console/applications", "Applications"),
    ("/console/groups", "Instance groups"),
    ("/console/hosts", "Hosts"),
    ("/console/consumers", "Consumers"),
)
"""Addresses and names of the console's pages."""

EVERYBODY = "everybody"
"""What the root of the owners' tree is called."""

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

    @property
    def fits_nothing(self) -> bool:
        """Whether it asks for states that there are not, which REST refuses."""
        return self._found.get("state") == ""

    def rest(self) -> dict[str, str | int]:
        """REST's parameters for the same."""
        newest = {"newest": 1} if self.order.startswith("-") else {}
        return {"all": 1, **self._found, "sort": self.order.removeprefix("-"), **newest}

    @property
    def _found(self) -> dict[str, str]:
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
    """A page of applications.

    `next` is the address of the next one, None at the end; `as_json` is empty if there can be none.
    """

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
    return Applications(
        wanted.address(),
        wanted,
        [
            column(name, field, wanted.order, lambda sort: replace(first, sort=sort).address())
            for name, field in COLUMNS.items()
        ],
        [Application.of(job, now) for job in jobs],
        None if after is None else replace(wanted, after=after).address(),
        "" if wanted.fits_nothing else f"/api/v1/jobs?{urlencode(wanted.rest())}",
        FILTERED,
    )


@dataclass(frozen=True)
class Group:
    """An instance group: a department, or everybody; `consumer` is its place in the owners' tree."""

    name: str
    state: str
    applications: int
    gpus: int
    hosts: int
    blocked: int
    consumer: str


@dataclass(frozen=True)
class Groups:
    """Instance groups."""

    rows: Sequence[Group]
    address: str = "/console/groups"
    title: str = "Instance groups"
    places: Sequence[tuple[str, str]] = PLACES


def groups(nodes: Sequence[Json], jobs: Sequence[HolderRecord], hosts: Sequence[Json]) -> Groups:
    """The departments among the nodes that REST has shown, each with the jobs below it.

    A blocked host is one that takes no workers: it is down, or drains.
    """
    parents = {node["name"]: node["parent"] for node in nodes}
    blocked = {host["name"] for host in hosts if host["state"] != "up"}
    departments = ["", *sorted({parent for parent in parents.values() if parent})]
    return Groups(
        [
            _group(name, [job for job in jobs if name in above(job.owner, parents)], blocked, parents)
            for name in departments
        ]
    )


def above(owner: str, parents: Mapping[str, str | None]) -> list[str]:
    """A node and all above it, the root last; one that is not in the tree hangs below the root."""
    path = [owner]
    while path[-1] and len(path) <= len(parents) + 1:
        path.append(parents.get(path[-1]) or "")
    return path


def _group(
    name: str, jobs: Sequence[HolderRecord], blocked: Collection[str], parents: Mapping[str, str | None]
) -> Group:
    running = [job for job in jobs if job.state in (State.STARTING, State.RUNNING)]
    devices = [(host, device) for job in jobs for host, names in job.held for device in names]
    used = {host for host, _ in devices}
    path = above(name, parents) if name else [name]
    return Group(
        name or EVERYBODY,
        "active" if running else "waiting" if jobs else "idle",
        len(running),
        sum(is_gpu(device) for _, device in devices),
        len(used),
        len(used & set(blocked)) if name else len(blocked),
        "/" + "/".join(filter(None, reversed(path))),
    )


@dataclass(frozen=True)
class HostRow:
    """A host; `action` is what the viewer can do with it, empty for nothing.

    `failed` are devices on which a worker has failed, and when they are tried again.
    """

    name: str
    state: str
    reason: str
    slots: str
    jobs: int
    load: str
    memory: str
    gpus: str
    since: float
    heard: float | None
    action: str
    failed: Sequence[tuple[str, float]]


@dataclass(frozen=True)
class Hosts:
    """The machines."""

    rows: Sequence[HostRow]
    address: str = "/console/hosts"
    title: str = "Hosts"
    places: Sequence[tuple[str, str]] = PLACES


def hosts_view(hosts: Sequence[Json], now: float, *, is_admin: bool) -> Hosts:
    """The page of the hosts that REST has shown."""
    return Hosts([_host(host, now, is_admin) for host in hosts])


def _host(host: Json, now: float, is_admin: bool) -> HostRow:
    used = sum(device["job"] is not None for device in host["devices"])
    load = host["load"]
    return HostRow(
        host["name"],
        host["state"],
        host["reason"],
        f"{used} of {len(host['devices'])}",
        host["jobs"],
        _percent(load.processors) if load else wording.NONE,
        _percent(load.memory) if load else wording.NONE,
        _gpus(load.gpus.values()) if load else wording.NONE,
        host["changed"],
        host["heard"],
        drain_action(host["state"], is_admin),
        [(one["name"], one["retried"]) for one in host["devices"] if (one["retried"] or 0.0) > now],
    )


def _gpus(loads: Collection[Load]) -> str:
    """The memory of GPUs that is used, and how much they compute on average."""
    if not loads:
        return wording.NONE
    use = sum(load.utilization for load in loads) / len(loads)
    return f"{wording.amount(sum(load.memory for load in loads) * 2**20)}, {use:.0f}%"


def _percent(part: float) -> str:
    return f"{100 * part:.0f}%"
