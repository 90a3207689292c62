"""Answers about hosts, shares and allocations: pure functions from what is stored."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import isinf
from types import MappingProxyType
from typing import Any

from edt_launch.service.cluster.records import AllocationRecord, HostRecord, ShareRecord
from edt_launch.service.files.series import number
from edt_launch.service.jobs.answers import held
from edt_launch.service.jobs.records import HolderRecord, JobRecord
from edt_launch.service.jobs.states import Wanted

Json = dict[str, Any]

Retried = Mapping[tuple[str, str], float]
"""Hosts and devices whose workers have failed, and when they are tried again."""


def hosts(
    records: Iterable[HostRecord],
    jobs: Iterable[HolderRecord | JobRecord],
    retried: Retried = MappingProxyType({}),
) -> list[Json]:
    """The machines, and which job has which device. A device that somebody is leaving is still theirs."""
    users: dict[tuple[str, str], tuple[str, bool]] = {}
    for one in jobs:
        for devices, is_leaving in ((one.held, False), (one.leaving, True)):
            for host, names in devices:
                users |= {(host, name): (one.id, is_leaving) for name in names}
    return [
        {
            "name": record.name,
            "state": record.state,
            "source": record.source,
            "reason": record.why,
            "changed": record.changed,
            "devices": [
                _device(name, users.get((record.name, name)), retried.get((record.name, name)))
                for name in record.devices
            ],
        }
        for record in records
    ]


def _device(name: str, user: tuple[str, bool] | None, retried: float | None) -> Json:
    job_id, is_leaving = user or (None, False)
    return {"name": name, "job": job_id, "is_leaving": is_leaving, "retried": retried if user else None}


def cluster(
    records: Sequence[HostRecord],
    jobs: Sequence[HolderRecord | JobRecord],
    retried: Retried = MappingProxyType({}),
) -> Json:
    """The machines, and how many of their devices are used; those of hosts that are down count apart."""
    shown = hosts(records, jobs, retried)
    counts = Counter(
        "down" if host["state"] == "down" else "used" if device["job"] is not None else host["state"]
        for host in shown
        for device in host["devices"]
    )
    return {
        "hosts": shown,
        "devices": counts.total(),
        "used": counts["used"],
        "free": counts["up"],
        "down": counts["down"],
        "jobs": Counter(one.state for one in jobs),
    }


def shares(
    records: Sequence[ShareRecord], jobs: Sequence[JobRecord], hosts: Sequence[HostRecord]
) -> list[Json]:
    """The owners' tree, with what jobs below each node have, could have and have lent."""
    parents = {record.name: record.parent for record in records}
    sizes, asked, due = Counter[str](), Counter[str](), defaultdict[str, float](float)
    for one in jobs:
        for node in above(one.owner, parents):
            sizes[node] += one.size
            asked[node] += one.max if one.wanted is Wanted.RUN else 0
            due[node] += number(one.share) or 0.0
    free = cluster(hosts, jobs)["free"]
    return [
        {
            **vars(record),
            "limit": None if isinf(record.limit) else record.limit,
            "budget": None if isinf(record.budget) else record.budget,
            "version": record.version,
            "size": sizes[record.name],
            "asks": asked[record.name],
            "entitled": due[record.name],
            "lent": max(0, int(record.guarantee) - sizes[record.name] - free) if record.lends else 0,
        }
        for record in records
    ]


def above(owner: str, parents: Mapping[str, str | None]) -> Sequence[str]:
    """A node and all above it, the root last; one that is not in the tree hangs below the root."""
    passed: list[str] = []
    node: str | None = owner
    while node is not None and node not in passed:
        passed.append(node)
        node = parents.get(node, "" if node else None)
    return passed


def allocation(record: AllocationRecord) -> Json:
    """A change of what a job has."""
    return {**vars(record), "hosts": held(record.devices), "leaving": held(record.leaving)}
