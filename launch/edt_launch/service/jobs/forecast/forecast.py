"""What something would change: the allocator is asked without it and with it. And what happens next."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from string import ascii_lowercase
from typing import Any

from edt_launch.allocator.decide import decide
from edt_launch.allocator.forecast.prediction import starts
from edt_launch.allocator.model import Cluster, Plan, Reason, load
from edt_launch.service.app.context import Context
from edt_launch.service.app.settings import Settings
from edt_launch.service.cluster.records import HostRecord, ShareRecord
from edt_launch.service.db.store import Store
from edt_launch.service.jobs import allocator_input, answers
from edt_launch.service.jobs.arrays import over_limit
from edt_launch.service.jobs.forecast.upcoming import Upcoming
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.states import LIVE, State, Wanted
from edt_launch.service.jobs.submission import Submission, record_of

NEW = tuple(f"jaaaaaaa{letter}" for letter in ascii_lowercase)
"""Stand for the ids that jobs do not have yet."""

MAX_JOBS = 200
"""Jobs that have not ended: with more of them nothing is foreseen, which would take too long for a page."""

MAX_WAITING = 50
"""Waiting jobs that are looked at to foresee what happens next: some of each owner."""

EFFORT = 0.05
"""The part of a processor that foreseeing may use."""

_WANTS = frozenset({State.QUEUED, State.STARTING, State.RUNNING})


def forecast(store: Store, settings: Settings, submission: Submission, now: float) -> dict[str, Any]:
    """The job as it would be, and all jobs whose number of workers would be another one because of it."""
    (new,), changes, reasons = _with(store, settings, [submission], now)
    (target,) = (change["to"] for change in changes if change["job"] is None)
    reason = reasons[new.id]
    own = {"id": "", "urls": {}, "target": target, "reason": reason.text, "share": reason.share}
    return {"job": answers.job(new).model_copy(update=own), "changes": changes}


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
    present = _present(store, now)
    hosts = store.hosts.all()
    nodes = store.shares.all()
    without, _ = _decided(store, settings, now, present, hosts, nodes)
    with_them, reasons = _decided(store, settings, now, {**present, **new}, hosts, nodes)
    return list(new.values()), _changes({**present, **new}, without, with_them, reasons, new.keys()), reasons


def effects(
    context: Context,
    jobs: Iterable[JobRecord] = (),
    hosts: Iterable[HostRecord] = (),
    shares: Iterable[ShareRecord] = (),
) -> list[dict[str, Any]]:
    """All jobs whose number of workers would be another one if these jobs, hosts and nodes were like that.

    Of the given jobs those are left out that would have none, since that is what was asked for.
    """
    store, settings, now = context.store, context.settings, context.clock()
    present = _present(store, now)
    jobs_then = present | {job.id: job for job in jobs}
    changed = {id_: job for id_, job in jobs_then.items() if _is_candidate(job, now)}
    known = {host.name: host for host in store.hosts.all()}
    nodes = store.shares.all()
    before, _ = _decided(store, settings, now, present, known.values(), nodes)
    others = known | {host.name: host for host in hosts}
    tree = {node.name: node for node in (*nodes, *shares)}
    after, reasons = _decided(store, settings, now, changed, others.values(), tree.values())
    return _changes(changed, before, after, reasons, frozenset())


async def upcoming(context: Context) -> Upcoming:
    """What is going to happen; found out once for all who ask."""
    return await context.drawings.get("upcoming", lambda: _upcoming(context), effort=EFFORT)


def _upcoming(context: Context) -> Upcoming:
    counts = context.store.jobs.counts()
    if sum(counts.get(state, 0) for state in LIVE) > MAX_JOBS:
        return Upcoming([], {}, [], {})
    now = context.clock()
    present = _present(context.store, now)
    waiting = _queue(present.values())
    jobs = [job for job in present.values() if job.size] + waiting[:MAX_WAITING]
    rests = {job.id: rest for job in jobs if job.size and (rest := answers.eta(job)) is not None}
    store = context.store
    cluster = _cluster(store, context.settings, present.values(), store.hosts.all(), store.shares.all())
    candidates = [allocator_input.job(job, context.settings.protected) for job in jobs]
    found = {start.job: start for start in starts(now, cluster, candidates, rests)} if waiting else {}
    ends = sorted((now + rest, id_) for id_, rest in rests.items())
    order = [*found, *(job.id for job in waiting if job.id not in found)]
    return Upcoming(order, found, ends, {job.id: job.name or job.id for job in present.values()})


def _queue(jobs: Iterable[JobRecord]) -> list[JobRecord]:
    """Those that wait, by priority; the first one of each owner before the second ones."""
    before: Counter[tuple[int, str]] = Counter()
    places = {}
    for job in sorted((job for job in jobs if not job.size), key=lambda job: job.number):
        places[job.id] = (-job.priority, before[job.priority, job.owner], job.number), job
        before[job.priority, job.owner] += 1
    return [job for _, job in sorted(places.values(), key=lambda place: place[0])]


def resumed(job: JobRecord) -> JobRecord:
    """A paused job as it would be if it was to go on."""
    is_off = job.state in (State.PAUSED, State.PAUSING)
    return replace(job, wanted=Wanted.RUN, state=State.QUEUED if is_off else job.state)


def _present(store: Store, now: float) -> dict[str, JobRecord]:
    found = [job for job in store.jobs.live() if _is_candidate(job, now)]
    over = over_limit(found)
    return {job.id: job for job in found if job.id not in over}


def _is_candidate(job: JobRecord, now: float) -> bool:
    return job.state in _WANTS and job.wanted is Wanted.RUN and not job.is_held(now)


def _decided(
    store: Store,
    settings: Settings,
    now: float,
    records: Mapping[str, JobRecord],
    hosts: Iterable[HostRecord],
    shares: Iterable[ShareRecord],
) -> tuple[Plan, Mapping[str, Reason]]:
    """What the allocator comes to once every resize has been worth its cost."""
    cluster = _cluster(store, settings, records.values(), hosts, shares)
    jobs = (allocator_input.job(record, settings.protected) for record in records.values())
    return decide(now, cluster, [replace(job, resize_cost=0.0, resized=None) for job in jobs])


def _cluster(
    store: Store,
    settings: Settings,
    records: Iterable[JobRecord],
    hosts: Iterable[HostRecord],
    shares: Iterable[ShareRecord],
) -> Cluster:
    machines = tuple(hosts)
    return Cluster(
        tuple(map(allocator_input.host, machines)),
        tuple(allocator_input.owners(shares, {job.owner for job in records})),
        allocator_input.options_on(machines, allocator_input.options(settings)),
        load(store.memory.get(allocator_input.MEMORY, {})),
    )


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
