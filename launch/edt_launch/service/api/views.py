"""How jobs, experiments, hosts and shares look in answers: pure functions from what is stored."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import isinf
from typing import Any

from edt_launch.service.api.context import may
from edt_launch.service.database.records import (
    AllocationRecord,
    Held,
    HostRecord,
    JobRecord,
    ShareRecord,
    TokenRecord,
    UserRecord,
)
from edt_launch.service.database.search_records import SearchRecord, TrialRecord
from edt_launch.service.experiment_spec import SearchSpec, ranking
from edt_launch.service.series import number

Json = dict[str, Any]

PRIVATE = ("directory", "command", "environment", "framework", "data_dir", "exit_code", "failure", "loss")
"""Fields of a job that only its owner and administrators see."""

_LINKS = ("why", "logs", "events", "metrics", "results", "checkpoints")


def job(record: JobRecord, viewer: UserRecord | None = None) -> Json:
    """A job, as `viewer` may see it; None: all of it."""
    url = f"/api/v1/jobs/{record.id}"
    shown: Json = {
        "id": record.id,
        "owner": record.owner,
        "name": record.name,
        "state": record.state,
        "wanted": record.wanted,
        "reason": record.reason,
        "note": note(record),
        "min": record.min,
        "max": record.max,
        "allowed": record.allowed,
        "priority": record.priority,
        "weight": record.weight,
        "size": record.size,
        "target": record.target,
        "share": number(record.share),
        "submitted": record.submitted,
        "started": record.started,
        "ended": record.ended,
        "restarts": record.restarts,
        "resizes": record.resizes,
        "step": record.step,
        "total_steps": record.total_steps,
        "throughput": number(record.throughput),
        "eta": None if record.has_ended else eta(record),
        "hosts": held(record.held),
        "urls": {"self": url, **{name: f"{url}/{name}" for name in _LINKS}},
        "directory": record.directory,
        "command": record.command,
        "environment": record.environment,
        "framework": record.framework,
        "data_dir": record.data_dir,
        "exit_code": record.exit_code,
        "failure": record.failure,
        "loss": number(record.loss),
    }
    return shown if viewer is None or may(viewer, record) else hidden(shown)


def hidden(shown: Json) -> Json:
    """A job as others see it."""
    return shown | dict.fromkeys(PRIVATE)


def note(record: JobRecord) -> str:
    """Which of a job's wishes count from its next start only; empty if all count already."""
    least, most = record.bounds or (record.min, record.max)
    late = []
    if record.min < least:
        late.append(f"min {record.min}: it was started with at least {least}")
    if record.max > most:
        late.append(f"max {record.max}: it was started with at most {most}")
    if record.max < least:
        late.append(f"max {record.max}: it was started with at least {least}")
    if not late:
        return ""
    return f"{', '.join(late)}; that counts when it is started again, by pause and resume for instance"


def eta(record: JobRecord) -> float | None:
    """Seconds until a job has made all its steps, at its present pace; None if that is unknown."""
    pace = number(record.throughput)
    if record.step is None or not record.total_steps or not pace or pace < 0 or not record.size:
        return None
    return max(0.0, (record.total_steps - record.step) / pace)


def held(devices: Held) -> list[Json]:
    """Hosts and their devices."""
    return [{"host": host, "devices": names} for host, names in devices]


def hosts(records: Iterable[HostRecord], jobs: Iterable[JobRecord]) -> list[Json]:
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
            "devices": [_device(name, users.get((record.name, name))) for name in record.devices],
        }
        for record in records
    ]


def _device(name: str, user: tuple[str, bool] | None) -> Json:
    job_id, is_leaving = user or (None, False)
    return {"name": name, "job": job_id, "is_leaving": is_leaving}


def cluster(records: Sequence[HostRecord], jobs: Sequence[JobRecord]) -> Json:
    """The machines, and how many of their devices are used; those of hosts that are down count apart."""
    shown = hosts(records, jobs)
    devices = [(host["state"], device) for host in shown for device in host["devices"]]
    up = [device for state, device in devices if state != "down"]
    used = sum(device["job"] is not None for device in up)
    free = sum(device["job"] is None for state, device in devices if state == "up")
    return {
        "hosts": shown,
        "devices": len(devices),
        "used": used,
        "free": free,
        "down": len(devices) - len(up),
        "jobs": Counter(one.state for one in jobs),
    }


def shares(records: Sequence[ShareRecord], jobs: Iterable[JobRecord]) -> list[Json]:
    """The owners' tree, with the devices that jobs below each node have."""
    sizes = _sizes({record.name: record.parent for record in records}, jobs)
    return [share(record, sizes[record.name]) for record in records]


def _sizes(parents: Mapping[str, str | None], jobs: Iterable[JobRecord]) -> Counter[str]:
    sizes: Counter[str] = Counter()
    for one in jobs:
        node: str | None = one.owner
        passed: set[str] = set()
        while node is not None and node not in passed:
            passed.add(node)
            sizes[node] += one.size
            node = parents.get(node, "" if node else None)
    return sizes


def share(record: ShareRecord, size: int) -> Json:
    """A node of the owners' tree."""
    return {
        "name": record.name,
        "parent": record.parent,
        "weight": record.weight,
        "guarantee": record.guarantee,
        "limit": None if isinf(record.limit) else record.limit,
        "lends": record.lends,
        "policy": record.policy,
        "half_life": record.half_life,
        "size": size,
    }


def allocation(record: AllocationRecord) -> Json:
    """A change of what a job has."""
    return {
        "time": record.time,
        "job": record.job,
        "owner": record.owner,
        "from": record.before,
        "to": record.after,
        "hosts": held(record.devices),
        "reason": record.reason,
    }


def experiment(record: SearchRecord, trials: Sequence[TrialRecord], viewer: UserRecord) -> Json:
    """An experiment, as `viewer` may see it."""
    spec = SearchSpec.model_validate(record.definition)
    is_theirs = may(viewer, record)
    best = ranking(spec.objective, trials)[:1] if is_theirs else []
    return {
        "id": record.id,
        "name": record.name,
        "owner": record.owner,
        "state": record.state,
        "wanted": record.wanted,
        "reason": record.reason if is_theirs else None,  # it may quote a job's private `failure`
        "algorithm": spec.algorithm,
        "metric": spec.metric,
        "objective": spec.objective,
        "total": record.total,
        "counts": Counter(one.state for one in trials),
        "created": record.created,
        "started": record.started,
        "ended": record.ended,
        "best": trial(best[0]) if best else None,
    }


def experiment_with_trials(record: SearchRecord, trials: Sequence[TrialRecord], viewer: UserRecord) -> Json:
    """An experiment and its trials, as `viewer` may see them."""
    private: Json = {
        "trials": [trial(one) for one in trials],
        "spec": record.definition,
        "job": record.template,
    }
    shown = private if may(viewer, record) else dict.fromkeys(private)
    return {**experiment(record, trials, viewer), **shown}


def trial(record: TrialRecord) -> Json:
    """A trial of an experiment."""
    return {
        "number": record.number,
        "state": record.state,
        "reason": record.reason,
        "parameters": record.parameters,
        "budget": record.budget,
        "metric": record.metric,
        "job": record.job,
        "started": record.started,
        "ended": record.ended,
    }


def user(record: UserRecord) -> Json:
    """Somebody who may use the service."""
    return {"name": record.name, "is_admin": record.is_admin, "created": record.created}


def token(record: TokenRecord) -> Json:
    """A token, without what is secret."""
    return {
        "id": record.id,
        "name": record.name,
        "user": record.user,
        "created": record.created,
        "expires": record.expires,
        "parent": record.parent,
    }
