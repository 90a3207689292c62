"""One step of the loop, as a pure function: observed state in, actions out.

The observed state is true, though parts of it may be older than others. Actions are carried out in order, but
perhaps not to the end: the next step sees how far they came, and goes on from there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from edt_launch.allocator.decide import decide
from edt_launch.allocator.model import Reason
from edt_launch.jobs import lifecycle, performance_model
from edt_launch.jobs.allocator_input import RUNS, inputs, is_wanted
from edt_launch.jobs.device_grant import DeviceGrant, Held, as_held, devices_of, in_use, leaving, size_of
from edt_launch.jobs.observed import (
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
from edt_launch.jobs.progress import Device
from edt_launch.service.database.records import BOUNDS, AllocationRecord
from edt_launch.service.database.records import Held as StoredHeld
from edt_launch.service.states import ENDED, HAS_LAUNCHER, State

REPEAT = 60.0
"""Seconds after which a file that its launcher does not follow is written again, with a newer generation."""


def step(now: float, observed: ObservedState) -> Decided:
    """What to do now.

    Args:
        now: unix seconds.
        observed: everything there is to know.
    """
    actions: list[Action] = []
    jobs: list[ObservedJob] = []
    for job in observed.jobs:
        transition = lifecycle.advance(now, job)
        actions += transition.actions
        if transition.job.record.state not in ENDED:
            jobs.append(transition.job)
    cluster, candidates = inputs(now, observed, jobs)
    plan, reasons = decide(now, cluster, candidates)
    users = _users(jobs)
    given: dict[str, Held] = {}
    for job in jobs:
        id_ = job.record.id
        held = _ordered(job, plan.assignments.get(id_, ()))
        if is_wanted(job) and not job.is_hidden and not _clashes(id_, held, users):
            reason = performance_model.explained(job.run, job.record.max, reasons.get(id_))
            actions += _carry_out(now, job, held, reason, plan.targets.get(id_, 0))
            given[id_] = held
            users |= dict.fromkeys(devices_of(held), id_)
        else:
            actions += lifecycle.record_progress(job)
    since = tuple(replace(job, held=given.get(job.id, job.held)) for job in candidates)
    return Decided(tuple(actions), AllocationRound(cluster, since, plan), plan.again_at)


def _users(jobs: Sequence[ObservedJob]) -> dict[Device, str]:
    """Who may be using which device, for all that run or whose processes are still there."""
    return {
        device: job.record.id
        for job in jobs
        if job.launcher.is_alive or job.launcher.has_leftovers
        for device in devices_of(in_use(job.grant, job.run))
    }


def _clashes(job: str, held: Held, users: Mapping[Device, str]) -> bool:
    """Whether somebody else may be using one of these devices: the allocator's own rule, made sure of."""
    return any(users.get(device, job) != job for device in devices_of(held))


def _ordered(job: ObservedJob, held: Held) -> Held:
    """The coordinator's host stays the first."""
    before = [host.host for host in job.grant.held] if job.record.state in RUNS else []
    return tuple(sorted(held, key=lambda at: before.index(at.host) if at.host in before else len(before)))


def _carry_out(
    now: float, job: ObservedJob, held: Held, reason: Reason | None, target: int
) -> Sequence[Action]:
    fields = _reasons(reason, target)
    if job.record.state is State.QUEUED:
        if held:
            return _start(now, job, held, fields)
        return _note(job, fields)
    if not held:
        return lifecycle.suspend(now, job, _text(reason) or "others need its devices").actions
    if held == job.grant.held and not _is_ignored(now, job):
        return [*_note(job, fields | _seen(job)), *_missed(now, job, held, _text(reason))]
    return _resize(now, job, held, fields)


def _start(now: float, job: ObservedJob, held: Held, fields: dict[str, Any]) -> Sequence[Action]:
    """Give a job that waits its devices, and start it."""
    record = job.record
    grant = _next(job, held, ())
    fields = {
        **fields,
        "size": size_of(held),
        "held": stored(held),
        "leaving": (),
        "generation": grant.generation,
        "running_since": now,
        "waiting_since": None,
        "notes": {**record.notes, "written": now, BOUNDS: (record.min, record.max)},
    }
    reason = fields.pop("reason", record.reason)
    return [
        Prepare(record.id),
        WriteFile(record.id, grant),
        Move(record.id, State.STARTING, reason, fields),
        Launch(record),
        Remember(_change(now, job, 0, held, reason)),
    ]


def _resize(now: float, job: ObservedJob, held: Held, fields: dict[str, Any]) -> Sequence[Action]:
    """Give a job that runs other devices. Those it loses are in use until its workers have left them."""
    record = job.record
    used = devices_of(in_use(job.grant, job.run)) - devices_of(held)
    left = as_held(used)
    grant = _next(job, held, left)
    fields |= {
        **_seen(job),
        "size": size_of(held),
        "held": stored(held),
        "leaving": stored(left),
        "generation": grant.generation,
        "notes": {**record.notes, "written": now},
    }
    before = job.grant.size
    if size_of(held) != before:
        fields["resized"] = now
    change = Remember(_change(now, job, before, held, fields.get("reason", record.reason)))
    is_new = held != job.grant.held
    return [WriteFile(record.id, grant), Note(record.id, fields), *([change] if is_new else [])]


def _next(job: ObservedJob, held: Held, left: Held) -> DeviceGrant:
    """The next content of its file, newer also than what its launcher has got from elsewhere."""
    following = job.run.following if job.run is not None else 0
    return replace(job.grant, generation=max(job.grant.generation, following)).next(held, left)


def _is_ignored(now: float, job: ObservedJob) -> bool:
    """Whether its launcher has long followed something else than the file: it may not take it for newer."""
    run = job.run
    is_elsewhere = run is not None and run.following != job.grant.generation
    return is_elsewhere and now - job.record.notes.get("written", now) >= REPEAT


def _missed(now: float, job: ObservedJob, held: Held, reason: str) -> Sequence[Action]:
    """The history lacks a change that was written to the file just before a crash."""
    record = job.record
    if record.generation == job.grant.generation:
        return []
    return [Remember(_change(now, job, record.size, held, reason))]


def _note(job: ObservedJob, fields: dict[str, Any]) -> Sequence[Action]:
    """Write down what is new."""
    if job.record.state in HAS_LAUNCHER:
        fields |= lifecycle.progress(job)
    new = lifecycle.changed(job.record, fields)
    return [Note(job.record.id, new)] if new else []


def _seen(job: ObservedJob) -> dict[str, Any]:
    """What its files and events say, as its row should have it."""
    grant = job.grant
    return {
        "size": grant.size,
        "held": stored(grant.held),
        "leaving": stored(leaving(grant, job.run)),
        "generation": grant.generation,
    }


def _reasons(reason: Reason | None, target: int) -> dict[str, Any]:
    """The allocator's reason, as a job's row has it."""
    if reason is None:
        return {"target": target}
    why = {
        "binding": str(reason.binding.value),
        "share": round(reason.share, 2),
        "target": reason.target,
        "path": [[name, round(share, 2)] for name, share in reason.path],
        "text": reason.text,
        "change": reason.change,
    }
    return {"target": target, "share": why["share"], "why": why, "reason": reason.text}


def _text(reason: Reason | None) -> str:
    return reason.text if reason is not None else ""


def _change(now: float, job: ObservedJob, before: int, held: Held, reason: str) -> AllocationRecord:
    record = job.record
    return AllocationRecord(record.id, record.owner, now, before, size_of(held), stored(held), reason)


def stored(held: Held) -> StoredHeld:
    """Devices in the form that rows have them."""
    return tuple((host.host, host.devices) for host in held)
