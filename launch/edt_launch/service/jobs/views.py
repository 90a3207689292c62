"""How jobs, searches, hosts and shares look in answers: pure functions from what is stored.

Records whose fields are those of their schema are answered as they are: the schema picks what is shown.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import isinf
from types import MappingProxyType
from typing import Any

from edt_launch.core.scripts import script_name
from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import may
from edt_launch.service.cluster.records import AllocationRecord, HostRecord, ShareRecord
from edt_launch.service.db.types import Held
from edt_launch.service.experiments.records import ExperimentRecord, RunRecord, TrialState
from edt_launch.service.files.series import number
from edt_launch.service.jobs import schemas
from edt_launch.service.jobs.explanation import unreachable
from edt_launch.service.jobs.records import HolderRecord, JobRecord
from edt_launch.service.jobs.states import Wanted

Json = dict[str, Any]

PRIVATE = dict.fromkeys(schemas.Job.model_fields.keys() - schemas.JobForAll.model_fields.keys())
"""What others than its owner and administrators see of a job: nothing."""

_LINKS = ("why", "logs", "events", "metrics", "results", "checkpoints")


def job(record: JobRecord, viewer: UserRecord | None = None) -> schemas.Job:
    """A job, as `viewer` may see it; None: all of it. Fields are those of its row, but for these."""
    url = f"/api/v1/jobs/{record.id}"
    derived = {
        "name": record.name or script_name(record.command),
        "note": note(record),
        "share": None if record.has_ended else number(record.share),
        "throughput": number(record.throughput),
        "loss": number(record.loss),
        "eta": None if record.has_ended else eta(record),
        "hosts": held(record.held),
        "urls": {"self": url, **{name: f"{url}/{name}" for name in _LINKS}},
    }
    shown = schemas.Job.model_validate(vars(record) | derived)
    return shown if viewer is None or may(viewer, record) else hidden(shown, record)


def hidden(shown: schemas.Job, record: JobRecord) -> schemas.Job:
    """A job as others see it: without the name of its script, too."""
    return shown.model_copy(update=PRIVATE | {"name": record.name})


def note(record: JobRecord) -> str:
    """What its state does not tell: trouble with files, bounds that count later, hosts that are lost."""
    if record.remark:
        return record.remark
    least, most = record.bounds or (record.min, record.max)
    late = []
    if record.min < least:
        late.append(f"min {record.min}: it was started with at least {least}")
    if record.max > most:
        late.append(f"max {record.max}: it was started with at most {most}")
    if record.max < least:
        late.append(f"max {record.max}: it was started with at least {least}")
    if late:
        return f"{', '.join(late)}; that counts when it is started again, by pause and resume for instance"
    return " ".join(unreachable(record))


def eta(record: JobRecord) -> float | None:
    """Seconds until a job has made all its steps, at its present pace; None if that is unknown."""
    pace = number(record.throughput)
    if record.step is None or not record.total_steps or not pace or pace < 0 or not record.size:
        return None
    return max(0.0, (record.total_steps - record.step) / pace)


def held(devices: Held) -> list[Json]:
    """Hosts and their devices."""
    return [{"host": host, "devices": names} for host, names in devices]


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
        for node in _above(one.owner, parents):
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


def _above(owner: str, parents: Mapping[str, str | None]) -> Sequence[str]:
    """A node and all above it; one that is not in the tree hangs below the root."""
    passed: list[str] = []
    node: str | None = owner
    while node is not None and node not in passed:
        passed.append(node)
        node = parents.get(node, "" if node else None)
    return passed


def allocation(record: AllocationRecord) -> Json:
    """A change of what a job has."""
    return {**vars(record), "hosts": held(record.devices), "leaving": held(record.leaving)}


def search(
    record: ExperimentRecord,
    counts: Mapping[TrialState, int],
    best: RunRecord | None,
    viewer: UserRecord,
) -> Json:
    """A search, as `viewer` may see it, with the number of trials in each state, and the best one."""
    shown = {**vars(record), "counts": counts, "best": best}
    # The reason may quote a job's private `failure`.
    return shown if may(viewer, record) else {**shown, "reason": None, "best": None}


def search_with_trials(
    record: ExperimentRecord, trials: Sequence[RunRecord], best: RunRecord | None, viewer: UserRecord
) -> Json:
    """A search and its trials, as `viewer` may see them."""
    private: Json = {"trials": trials, "spec": record.generator, "job": record.template}
    shown = private if may(viewer, record) else dict.fromkeys(private)
    return {**search(record, Counter(trial.state for trial in trials), best, viewer), **shown}
