"""What the console shows: hosts and instance groups, in the words of a cluster's console."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edt_launch.cluster.hosts import is_gpu
from edt_launch.cluster.nvidia import Load
from edt_launch.core.text.byte_sizes import byte_size
from edt_launch.service.cluster.pages.views.pool import drain_action
from edt_launch.service.jobs.records import HolderRecord
from edt_launch.service.jobs.states import State
from edt_launch.service.web import wording

Json = Mapping[str, Any]

PLACES = (
    ("/console/hosts", "Hosts"),
    ("/console/groups", "Instance groups"),
    ("/shares", "Shares"),
)
"""Addresses and names of the console's pages."""

EVERYBODY = "everybody"
"""What the root of the owners' tree is called."""


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
    return f"{byte_size(sum(load.memory for load in loads) * 2**20)}, {use:.0f}%"


def _percent(part: float) -> str:
    return f"{100 * part:.0f}%"
