"""Instance groups, in the words of a cluster's console."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edt_launch.cluster.hosts import is_gpu
from edt_launch.service.cluster.answers import above
from edt_launch.service.jobs.records import HolderRecord
from edt_launch.service.jobs.states import State
from edt_launch.service.web import wording

Json = Mapping[str, Any]


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


def groups(nodes: Sequence[Json], jobs: Sequence[HolderRecord], hosts: Sequence[Json]) -> list[Group]:
    """The departments among the nodes that REST has shown, each with the jobs below it.

    A blocked host is one that takes no workers: it is down, or drains.
    """
    parents = {node["name"]: node["parent"] for node in nodes}
    blocked = {host["name"] for host in hosts if host["state"] != "up"}
    departments = ["", *sorted({parent for parent in parents.values() if parent})]
    return [
        _group(name, [job for job in jobs if name in above(job.owner, parents)], blocked, parents)
        for name in departments
    ]


def _group(
    name: str, jobs: Sequence[HolderRecord], blocked: Collection[str], parents: Mapping[str, str | None]
) -> Group:
    running = [job for job in jobs if job.state in (State.STARTING, State.RUNNING)]
    devices = [(host, device) for job in jobs for host, names in job.held for device in names]
    used = {host for host, _ in devices}
    path = above(name, parents) if name else [name]
    return Group(
        name or wording.EVERYBODY,
        "active" if running else "waiting" if jobs else "idle",
        len(running),
        sum(is_gpu(device) for _, device in devices),
        len(used),
        len(used & set(blocked)) if name else len(blocked),
        "/" + "/".join(filter(None, reversed(path))),
    )
