"""One step of the loop, as a pure function: facts in, actions out.

What a step may rely on: the facts are true, though some may be older than others; and what it decides is
carried out in order, but perhaps not to its end. Then the next step sees how far it came, and goes on from
there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from edt_launch.allocator.decide import decide
from edt_launch.allocator.model import Reason
from edt_launch.jobs import lifecycle, performance_model
from edt_launch.jobs.allocator_input import RUNS, inputs, is_wanted
from edt_launch.jobs.device_grant import Held, Holding, as_held, devices_of, in_use, leaving, size_of
from edt_launch.jobs.observed import (
    Action,
    Asked,
    Decided,
    Facts,
    JobFacts,
    Launch,
    Move,
    Note,
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


def step(now: float, facts: Facts) -> Decided:
    """What to do now.

    Args:
        now: unix seconds.
        facts: everything there is to know.
    """
    actions: list[Action] = []
    jobs: list[JobFacts] = []
    for job in facts.jobs:
        lived = lifecycle.live(now, job)
        actions += lived.actions
        if lived.job.record.state not in ENDED:
            jobs.append(lived.job)
    cluster, asked = inputs(now, facts, jobs)
    plan, reasons = decide(now, cluster, asked)
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
            actions += lifecycle.tell_progress(job)
    since = tuple(replace(job, held=given.get(job.id, job.held)) for job in asked)
    return Decided(tuple(actions), Asked(cluster, since, plan), plan.again_at)


def _users(jobs: Sequence[JobFacts]) -> dict[Device, str]:
    """Who may be using which device, for all that run or whose processes are still there."""
    return {
        device: job.record.id
        for job in jobs
        if job.launcher.is_alive or job.launcher.has_leftovers
        for device in devices_of(in_use(job.holding, job.run))
    }


def _clashes(job: str, held: Held, users: Mapping[Device, str]) -> bool:
    """Whether somebody else may be using one of these devices: the allocator's own rule, made sure of."""
    return any(users.get(device, job) != job for device in devices_of(held))


def _ordered(job: JobFacts, held: Held) -> Held:
    """The coordinator's host stays the first."""
    before = [host.host for host in job.holding.held] if job.record.state in RUNS else []
    return tuple(sorted(held, key=lambda at: before.index(at.host) if at.host in before else len(before)))


def _carry_out(now: float, job: JobFacts, held: Held, reason: Reason | None, target: int) -> Sequence[Action]:
    facts = _reasons(reason, target)
    if job.record.state is State.QUEUED:
        if held:
            return _start(now, job, held, facts)
        return _note(job, facts)
    if not held:
        return lifecycle.suspend(now, job, _text(reason) or "others need its devices").actions
    if held == job.holding.held and not _is_ignored(now, job):
        return [*_note(job, facts | _seen(job)), *_missed(now, job, held, _text(reason))]
    return _resize(now, job, held, facts)


def _start(now: float, job: JobFacts, held: Held, facts: dict[str, Any]) -> Sequence[Action]:
    """Give a job that waits its devices, and start it."""
    record = job.record
    holding = _next(job, held, ())
    facts = {
        **facts,
        "size": size_of(held),
        "held": stored(held),
        "leaving": (),
        "generation": holding.generation,
        "running_since": now,
        "waiting_since": None,
        "notes": {**record.notes, "written": now, BOUNDS: (record.min, record.max)},
    }
    reason = facts.pop("reason", record.reason)
    return [
        Prepare(record.id),
        WriteFile(record.id, holding),
        Move(record.id, State.STARTING, reason, facts),
        Launch(record),
        Remember(_change(now, job, 0, held, reason)),
    ]


def _resize(now: float, job: JobFacts, held: Held, facts: dict[str, Any]) -> Sequence[Action]:
    """Give a job that runs other devices. Those it loses are in use until its workers have left them."""
    record = job.record
    used = devices_of(in_use(job.holding, job.run)) - devices_of(held)
    left = as_held(used)
    holding = _next(job, held, left)
    facts |= {
        **_seen(job),
        "size": size_of(held),
        "held": stored(held),
        "leaving": stored(left),
        "generation": holding.generation,
        "notes": {**record.notes, "written": now},
    }
    before = job.holding.size
    if size_of(held) != before:
        facts["resized"] = now
    change = Remember(_change(now, job, before, held, facts.get("reason", record.reason)))
    is_new = held != job.holding.held
    return [WriteFile(record.id, holding), Note(record.id, facts), *([change] if is_new else [])]


def _next(job: JobFacts, held: Held, left: Held) -> Holding:
    """The next content of its file, newer also than what its launcher has got from elsewhere."""
    following = job.run.following if job.run is not None else 0
    return replace(job.holding, generation=max(job.holding.generation, following)).next(held, left)


def _is_ignored(now: float, job: JobFacts) -> bool:
    """Whether its launcher has long followed something else than the file: it may not take it for newer."""
    run = job.run
    is_elsewhere = run is not None and run.following != job.holding.generation
    return is_elsewhere and now - job.record.notes.get("written", now) >= REPEAT


def _missed(now: float, job: JobFacts, held: Held, reason: str) -> Sequence[Action]:
    """The history lacks a change that was written to the file just before a crash."""
    record = job.record
    if record.generation == job.holding.generation:
        return []
    return [Remember(_change(now, job, record.size, held, reason))]


def _note(job: JobFacts, facts: dict[str, Any]) -> Sequence[Action]:
    """Write down what is new."""
    if job.record.state in HAS_LAUNCHER:
        facts |= lifecycle.progress(job)
    new = lifecycle.changed(job.record, facts)
    return [Note(job.record.id, new)] if new else []


def _seen(job: JobFacts) -> dict[str, Any]:
    """What its files and events say, as its row should have it."""
    holding = job.holding
    return {
        "size": holding.size,
        "held": stored(holding.held),
        "leaving": stored(leaving(holding, job.run)),
        "generation": holding.generation,
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


def _change(now: float, job: JobFacts, before: int, held: Held, reason: str) -> AllocationRecord:
    record = job.record
    return AllocationRecord(record.id, record.owner, now, before, size_of(held), stored(held), reason)


def stored(held: Held) -> StoredHeld:
    """Devices in the form that rows have them."""
    return tuple((host.host, host.devices) for host in held)
