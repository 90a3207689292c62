"""What something would change: the allocator is asked twice, without it and with it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from string import ascii_lowercase
from types import MappingProxyType
from typing import Any

from edt_launch.allocator.decide import decide
from edt_launch.allocator.model import Cluster, Plan, Reason, load
from edt_launch.service.api import views
from edt_launch.service.database import mapping
from edt_launch.service.database.records import HostRecord, JobRecord
from edt_launch.service.database.store import Store
from edt_launch.service.settings import Settings
from edt_launch.service.states import State, Wanted
from edt_launch.service.submission import Submission, record_of

NEW = tuple(f"jaaaaaaa{letter}" for letter in ascii_lowercase)
"""Stand for the ids that jobs do not have yet."""

_WANTS = frozenset({State.QUEUED, State.STARTING, State.RUNNING})


def forecast(store: Store, settings: Settings, submission: Submission, now: float) -> dict[str, Any]:
    """The job as it would be, and all jobs whose number of workers would be another one because of it."""
    (new,), changes, reasons = _with(store, settings, [submission], now)
    (target,) = (change["to"] for change in changes if change["job"] is None)
    job = views.job(new) | {"id": "", "urls": {}, "target": target}
    return {"job": job | {"reason": reasons[new.id].text, "share": reasons[new.id].share}, "changes": changes}


def changes_by(
    store: Store, settings: Settings, submissions: Sequence[Submission], now: float
) -> list[dict[str, Any]]:
    """All jobs whose number of workers would be another one if these were submitted, and they themselves.

    Of at most as many as `NEW` has; they have no id.
    """
    return _with(store, settings, submissions, now)[1]


def _with(
    store: Store, settings: Settings, submissions: Sequence[Submission], now: float
) -> tuple[list[JobRecord], list[dict[str, Any]], Mapping[str, Reason]]:
    new = {id_: record_of(one, id_, now) for id_, one in zip(NEW, submissions, strict=False)}
    present = _present(store)
    hosts = store.hosts.all()
    without, _ = _decided(store, settings, now, present, hosts)
    with_them, reasons = _decided(store, settings, now, {**present, **new}, hosts)
    return list(new.values()), _changes({**present, **new}, without, with_them, reasons, new.keys()), reasons


def effects(
    store: Store,
    settings: Settings,
    now: float,
    jobs: Mapping[str, JobRecord] = MappingProxyType({}),
    hosts: Iterable[HostRecord] = (),
) -> list[dict[str, Any]]:
    """All jobs whose number of workers would be another one if these jobs and hosts were like that.

    Of the given jobs those are left out that would have none, since that is what was asked for.
    """
    present = _present(store)
    changed = {id_: job for id_, job in {**present, **jobs}.items() if _is_candidate(job)}
    known = {host.name: host for host in store.hosts.all()}
    before, _ = _decided(store, settings, now, present, known.values())
    others = known | {host.name: host for host in hosts}
    after, reasons = _decided(store, settings, now, changed, others.values())
    return _changes(changed, before, after, reasons, frozenset())


def resumed(job: JobRecord) -> JobRecord:
    """A paused job as it would be if it was to go on."""
    is_off = job.state in (State.PAUSED, State.PAUSING)
    return replace(job, wanted=Wanted.RUN, state=State.QUEUED if is_off else job.state)


def _present(store: Store) -> dict[str, JobRecord]:
    return {job.id: job for job in store.jobs.live() if _is_candidate(job)}


def _is_candidate(job: JobRecord) -> bool:
    return job.state in _WANTS and job.wanted is Wanted.RUN


def _decided(
    store: Store,
    settings: Settings,
    now: float,
    records: Mapping[str, JobRecord],
    hosts: Iterable[HostRecord],
) -> tuple[Plan, Mapping[str, Reason]]:
    cluster = Cluster(
        tuple(map(mapping.host, hosts)),
        tuple(mapping.owners(store.shares.all(), {job.owner for job in records.values()})),
        mapping.options(settings),
        load(store.memory.get(mapping.MEMORY, {})),
    )
    return decide(now, cluster, [mapping.job(record, settings.protected) for record in records.values()])


def _changes(
    records: Mapping[str, JobRecord],
    before: Plan,
    after: Plan,
    reasons: Mapping[str, Reason],
    always: Collection[str],
) -> list[dict[str, Any]]:
    return [
        _change(record, before.targets.get(id_, 0), after.targets.get(id_, 0), reasons[id_].text)
        for id_, record in records.items()
        if id_ in always or before.targets.get(id_, 0) != after.targets.get(id_, 0)
    ]


def _change(job: JobRecord, before: int, after: int, reason: str) -> dict[str, Any]:
    is_new = job.id in NEW
    return {
        "job": None if is_new else job.id,
        "owner": job.owner,
        "name": job.name,
        "from": before,
        "to": after,
        "reason": reason,
    }
