"""One step of the loop, as a pure function: observed state in, actions out.

The observed state is true, though parts of it may be older than others. Actions are carried out in order, but
perhaps not to the end: the next step sees how far they came, and goes on from there.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from math import inf
from typing import Any

from edt_launch.allocator.decide import decide
from edt_launch.allocator.model import Binding, Cluster, Job, Plan, Reason
from edt_launch.allocator.usage import remember
from edt_launch.service.cluster.records import AllocationRecord
from edt_launch.service.db.types import Held as StoredHeld
from edt_launch.service.jobs import allocator_input
from edt_launch.service.jobs.arrays import over_limit
from edt_launch.service.jobs.loop import idling, lifecycle
from edt_launch.service.jobs.loop.device_grant import (
    DeviceGrant,
    Held,
    as_held,
    devices_of,
    in_use,
    leaving,
    size_of,
)
from edt_launch.service.jobs.loop.holding import hold
from edt_launch.service.jobs.loop.idling import is_idle
from edt_launch.service.jobs.loop.lifecycle import Transition
from edt_launch.service.jobs.loop.observed import (
    Action,
    AllocationRound,
    Decided,
    Launch,
    Move,
    Note,
    ObservedJob,
    ObservedState,
    Prepare,
    Remember,
    WriteFile,
)
from edt_launch.service.jobs.loop.progress import Device, LauncherRun
from edt_launch.service.jobs.states import ENDED, HAS_LAUNCHER, State, Wanted

REPEAT = 60.0
"""Seconds after which a file that its launcher does not follow is written again, with a newer generation."""


RUNS = frozenset({State.STARTING, State.RUNNING})
"""States in which a job's number of workers may be changed."""


def step(now: float, observed: ObservedState) -> Decided:
    """What to do now."""
    actions: list[Action] = []
    jobs: list[ObservedJob] = []
    states = {**observed.ended, **{job.record.id: job.record.state for job in observed.jobs}}
    for job in observed.jobs:  # in the order of their submission: those that others wait for come first
        transition = _held_back(now, lifecycle.advance(now, job), states)
        actions += transition.actions
        record = transition.job.record
        states[record.id] = record.state
        if record.state not in ENDED:
            jobs.append(transition.job)
    held_back = {job.record.id for job in jobs if job.record.is_held(now) and not has_processes(job)}
    jobs, noted = _limited(now, jobs, held_back)
    actions += noted
    idle = {job.record.id for job in jobs if is_idle(now, job, observed.idle_timeout)}
    cluster, candidates = inputs(now, observed, [job for job in jobs if job.record.id not in held_back], idle)
    plan, reasons = decide(now, cluster, candidates)
    users = _users(jobs)
    given: dict[str, Held] = {}
    for job in jobs:
        actions += _lost(now, job)
        id_ = job.record.id
        held = _ordered(job, plan.assignments.get(id_, ()))
        if id_ in held_back:
            pass
        elif is_wanted(job) and not job.is_hidden and not _clashes(id_, held, users):
            reason = explained(job.run, job.record.max, reasons.get(id_))
            if id_ in idle:
                reason = idling.explained(reason, observed.idle_timeout)
            actions += _carry_out(now, job, held, reason, plan.targets.get(id_, 0), at_once=id_ in idle)
            given[id_] = held
            users |= dict.fromkeys(devices_of(held), id_)
        else:
            actions += lifecycle.record_progress(job)
    since = tuple(replace(job, held=given.get(job.id, job.held)) for job in candidates)
    times = [job.record.begin for job in jobs]
    times += [job.record.limit_reached_at for job in jobs if job.record.running_since is not None]
    again_at = min((at for at in (plan.again_at, *times) if at is not None and now < at < inf), default=None)
    return Decided(tuple(actions), AllocationRound(cluster, since, plan), again_at)


def _held_back(now: float, transition: Transition, states: Mapping[str, State | None]) -> Transition:
    """Note what a job waits for besides devices; one that can never start is stopped."""
    job = transition.job
    if job.is_hidden or has_processes(job):
        return transition
    held = hold(now, job.record, states)
    if held.is_final:
        return transition.move(State.STOPPED, held.reason)
    fields: dict[str, Any] = {"after": held.after}
    if held.reason:
        fields |= {"reason": held.reason, "why": None}
    new = lifecycle.changed(job.record, fields)
    if not new:
        return transition
    if job.record.state is State.QUEUED:  # it has not waited for devices before
        new["waiting_since"] = max(now, job.record.begin)
    return transition.note(**new)


def _limited(
    now: float, jobs: list[ObservedJob], held_back: set[str]
) -> tuple[list[ObservedJob], Sequence[Action]]:
    """Hold back jobs of arrays of which enough jobs run; those let go have not waited for devices before."""
    over = over_limit(job.record for job in jobs if job.record.id not in held_back)
    actions: list[Action] = []
    after = []
    for job in jobs:
        record, fields = job.record, dict[str, Any]()
        if record.id in over and not has_processes(job):
            held_back.add(record.id)
            fields = {"reason": over[record.id], "why": None, "is_array_full": True}
        elif record.is_array_full and record.id not in over:
            fields = {"waiting_since": now, "is_array_full": False}
        if new := lifecycle.changed(record, fields):
            actions.append(Note(record.id, new))
        after.append(replace(job, record=replace(record, **new)))
    return after, actions


def _users(jobs: Sequence[ObservedJob]) -> dict[Device, str]:
    return {
        device: job.record.id
        for job in jobs
        if has_processes(job)
        for device in devices_of(in_use(job.grant, job.run))
    }


def _clashes(job: str, held: Held, users: Mapping[Device, str]) -> bool:
    """Whether somebody else may be using one of these devices: the allocator's own rule, made sure of."""
    return any(users.get(device, job) != job for device in devices_of(held))


def _ordered(job: ObservedJob, held: Held) -> Held:
    """The coordinator's host stays the first."""
    before = [host.host for host in job.grant.held] if job.record.state in RUNS else []
    return tuple(sorted(held, key=lambda at: before.index(at.host) if at.host in before else len(before)))


def explained(run: LauncherRun | None, most: int, reason: Reason | None) -> Reason | None:
    """The allocator's reason for a job's size, where its program has asked for no more than that.

    Args:
        run: its launcher's.
        most: workers that it may have, as its owner says.
        reason: what the allocator says, which knows of the lower number alone.
    """
    if run is None or run.usable is None or reason is None:
        return reason
    if reason.binding is not Binding.MAX or run.usable >= min(most, run.max_np):
        return reason
    return replace(
        reason,
        text=f"has {reason.target}: its program has said that it can use {run.usable} at most",
        change="Its script decides: by its batch sizes, its number of engines, or its scale-up function.",
    )


def _carry_out(
    now: float, job: ObservedJob, held: Held, reason: Reason | None, target: int, *, at_once: bool
) -> Sequence[Action]:
    fields = _reasons(reason, target)
    if job.record.state is State.QUEUED:
        return _start(now, job, held, fields) if held else _note(job, fields)
    if not held:
        return lifecycle.suspend(now, job, _text(reason) or "others need its devices").actions
    if held == job.grant.held and not _is_ignored(now, job):
        left = leaving(job.grant, job.run)
        fields |= _columns(job.grant, left)
        return [*_note(job, fields), *_missed(now, job, held, left, _text(reason))]
    return _resize(now, job, held, fields, at_once=at_once)


def _start(now: float, job: ObservedJob, held: Held, fields: dict[str, Any]) -> Sequence[Action]:
    record = job.record
    grant = _next(job, held, ())
    reason = fields.pop("reason", record.reason)
    fields |= {"running_since": now, "waiting_since": None, "granted_at": now, "may_lose": False}
    fields |= _columns(grant, ()) | {"bounds": (record.min, record.max)}
    return [
        Prepare(record.id),
        WriteFile(record.id, grant),
        Move(record.id, State.STARTING, reason, fields),
        Launch(record),
        Remember(_change(now, job, 0, held, reason)),
    ]


def _resize(
    now: float, job: ObservedJob, held: Held, fields: dict[str, Any], *, at_once: bool
) -> Sequence[Action]:
    """Give a job that runs other devices. Those it loses are in use until its workers have left them.

    If `at_once`, its launcher ends these workers: a job that is idle does not come to the end of a step.
    """
    record = job.record
    left = as_held(devices_of(in_use(job.grant, job.run)) - devices_of(held))
    grant = replace(_next(job, held, left), at_once=at_once)
    fields |= _columns(grant, left) | {"granted_at": now}
    if held == job.grant.held:
        return [WriteFile(record.id, grant), Note(record.id, fields)]
    fields["resized"] = now
    change = _change(now, job, job.grant.size, held, fields.get("reason", record.reason), left)
    return [WriteFile(record.id, grant), Note(record.id, fields), Remember(change)]


def write_again(job: ObservedJob) -> Sequence[Action]:
    """Have a job's file give the same anew, as its hosts are reached in another way."""
    grant = _next(job, job.grant.held, job.grant.leaving)
    return [WriteFile(job.record.id, grant), Note(job.record.id, _columns(grant, grant.leaving))]


def _next(job: ObservedJob, held: Held, left: Held) -> DeviceGrant:
    """The next content of its file, newer also than what its launcher has got from elsewhere."""
    following = job.run.following if job.run is not None else 0
    return DeviceGrant(max(job.grant.generation, following) + 1, held, left)


def _is_ignored(now: float, job: ObservedJob) -> bool:
    """Whether its launcher has long followed something else than the file: it may not take it for newer."""
    run = job.run
    is_elsewhere = run is not None and run.following != job.grant.generation
    written = now if job.record.granted_at is None else job.record.granted_at
    return is_elsewhere and now - written >= REPEAT


def _missed(now: float, job: ObservedJob, held: Held, left: Held, reason: str) -> Sequence[Action]:
    """What the history lacks: workers have left, or the file was written just before a crash."""
    record = job.record
    if record.generation != job.grant.generation:
        return [Remember(_change(now, job, record.size, held, reason, left))]
    known = {(host, device) for host, devices in record.leaving for device in devices}
    if known <= devices_of(left):
        return []
    return [Remember(_change(now, job, record.size, held, "its workers have left", left))]


def _lost(now: float, job: ObservedJob) -> Sequence[Action]:
    """Workers that have failed, for the history."""
    lost = job.progress.losses - job.record.losses
    if lost <= 0 or job.is_hidden:
        return []
    reason = "a worker has failed" if lost == 1 else f"{lost} workers have failed"
    left = leaving(job.grant, job.run)
    return [Remember(replace(_change(now, job, job.grant.size, job.grant.held, reason, left), lost=lost))]


def _note(job: ObservedJob, fields: dict[str, Any]) -> Sequence[Action]:
    if job.record.state in HAS_LAUNCHER:
        fields |= lifecycle.progress(job)
    new = lifecycle.changed(job.record, fields)
    return [Note(job.record.id, new)] if new else []


def _columns(grant: DeviceGrant, left: Held) -> dict[str, Any]:
    return {
        "size": grant.size,
        "held": stored(grant.held),
        "leaving": stored(left),
        "generation": grant.generation,
    }


def _reasons(reason: Reason | None, target: int) -> dict[str, Any]:
    if reason is None:
        return {"target": target}
    share = round(reason.share, 2)
    path = [[name, round(part, 2)] for name, part in reason.path]
    why = asdict(reason) | {"binding": reason.binding.value, "share": share, "path": path}
    return {"target": target, "share": share, "why": why, "reason": reason.text}


def _text(reason: Reason | None) -> str:
    return reason.text if reason is not None else ""


def _change(
    now: float, job: ObservedJob, before: int, held: Held, reason: str, left: Held = ()
) -> AllocationRecord:
    id_, owner = job.record.id, job.record.owner
    return AllocationRecord(
        id_, owner, now, before, size_of(held), stored(held), reason, leaving=stored(left)
    )


def stored(held: Held) -> StoredHeld:
    """Devices in the form that rows have them."""
    return tuple((host.host, host.devices) for host in held)


# The input of the allocator.


def inputs(
    now: float, observed: ObservedState, jobs: Sequence[ObservedJob], idle: Collection[str] = ()
) -> tuple[Cluster, tuple[Job, ...]]:
    """The input, with remembered usage brought up to `now`.

    `jobs` are those that have not ended, and `idle` the ids of those of them that are to have their minimum.
    """
    cluster = Cluster(
        tuple(map(allocator_input.host, observed.hosts)),
        tuple(allocator_input.owners(observed.shares, {job.record.owner for job in jobs})),
        allocator_input.options_on(observed.hosts, observed.options),
        observed.memory if observed.last is None else observed.last.plan.memory,
    )
    asking = (as_job(job, observed.protected) for job in jobs if has_processes(job) or is_wanted(job))
    wanted = tuple(idling.at_minimum(job) if job.id in idle else job for job in asking)
    was = observed.last or AllocationRound(cluster, wanted, Plan({}, {}, observed.memory))
    known_owners, known_jobs = remember(now, was.cluster, was.jobs, was.plan)
    of_owners = {owner.name: owner.usage for owner in known_owners}
    of_jobs = {job.id: job.usage for job in known_jobs}
    owners = (replace(owner, usage=of_owners.get(owner.name, owner.usage)) for owner in cluster.owners)
    updated = (replace(job, usage=of_jobs.get(job.id, job.usage)) for job in wanted)
    return replace(cluster, owners=tuple(owners)), tuple(updated)


def has_processes(job: ObservedJob) -> bool:
    """Whether it may be using devices."""
    return job.launcher.is_alive or job.launcher.has_leftovers


def is_wanted(job: ObservedJob) -> bool:
    """Whether the allocator may give it devices."""
    if job.record.state is State.QUEUED:
        return job.record.wanted is Wanted.RUN and not has_processes(job) and not job.is_hidden
    return job.record.state in RUNS and job.launcher.is_alive


def as_job(job: ObservedJob, protected: float) -> Job:
    """A job as the allocator sees it; one that is on its way out wants nothing, and holds what it uses."""
    record, run = job.record, job.run
    known = replace(
        allocator_input.job(record, protected),
        preemption=allocator_input.preemption(record, can_save=job.can_save),
        resize_cost=job.progress.resize_cost,
        start_cost=job.progress.start_cost,
        speedup=job.progress.speedup,
        step_time=job.progress.step_time,
        held=(),
        leaving=(),
        started=None,
        waiting_since=None,
    )
    if not is_wanted(job):
        return replace(known, min=0, max=0, allowed=None, leaving=in_use(job.grant, run))
    if record.state is State.QUEUED:
        return replace(known, waiting_since=record.waiting_since or record.submitted)
    least, most = _limits(job)
    left, started = leaving(job.grant, run), record.running_since or record.submitted
    return replace(known, min=least, max=most, held=job.grant.held, leaving=left, started=started)


def _limits(job: ObservedJob) -> tuple[int, int]:
    """The job's bounds, as far as its launcher, started with those of then, and its program go along."""
    record, run = job.record, job.run
    if job.is_hidden:
        return job.grant.size, job.grant.size
    if run is None:
        return record.min, record.max
    usable = record.max if run.usable is None else run.usable
    most = max(min(record.max, run.max_np, usable), run.min_np)
    return min(max(record.min, run.min_np), most), most
