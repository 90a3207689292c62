"""Why a job has its size, for people: from what the allocator has said last, while that is what decides."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from edt_launch.allocator import reasons
from edt_launch.allocator.model import Binding, Reason
from edt_launch.service.cluster.records import HostRecord
from edt_launch.service.files.series import number
from edt_launch.service.jobs import allocator_input
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.states import State, Wanted

SHOWN_DEVICES = 4
"""Devices that a line names."""


def explain(
    job: JobRecord,
    start: Mapping[str, Any] | None = None,
    waiting: str = "",
    hosts: Sequence[HostRecord] = (),
) -> dict[str, Any]:
    """What decides about its size, and when it starts (`upcoming.begins`); the same in a few lines.

    Args:
        job: it.
        start: when it starts, if it waits.
        waiting: what the source of hosts is waiting for; named if the job could use more devices.
        hosts: those of the pool, of which lost ones are named if the job could use more devices.
    """
    answer = _explain(job)
    told = [f"It {start['text']}."] if start else []
    if job.size < job.max and _apart(job) is None:
        lost = [f"{one.name} is down since {_clock(one.changed)}: {one.lost}." for one in hosts if one.lost]
        told = [*lost, *([f"The pool is {waiting}."] if waiting else []), *told]
    return answer | {"lines": [*answer["lines"], *told], "start": start}


def _explain(job: JobRecord) -> dict[str, Any]:
    if (apart := _apart(job)) is not None:
        failure = (job.failure or "").splitlines() if job.has_ended else []
        return _answer(job, None, *apart, lines=[*filter(None, apart), *failure])
    if job.why is None:
        return _answer(job, None, job.reason, "", lines=[f"{job.id} is {job.state}: {job.reason}"])
    stored = reason_of(job.why, job)
    reason = _bounded(stored, job)
    # What has happened since the last decision, a pause say, is in the job's own reason.
    own = [] if job.reason == stored.text else [f"{job.id} is {job.state}: {job.reason}"]
    told = reasons.explain(allocator_input.job(job, protected=0.0), reason)
    remarks = [remark for remark in (job.remark, *unreachable(job), _lost_workers(job)) if remark]
    return _answer(job, reason, reason.text, reason.change, lines=[*own, *told, *remarks])


def unreachable(job: JobRecord) -> list[str]:
    """Which hosts of a running job it cannot reach, since when and why: a sentence for each."""
    if job.state is not State.RUNNING:
        return []
    return [
        f"It cannot reach {host} since {_clock(since)}: {reason}." for host, since, reason in job.unreachable
    ]


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))


def _lost_workers(job: JobRecord) -> str:
    """Which of its devices have no worker because the last one failed there; empty if there are none."""
    devices = [f"{host}:{device}" for host, device, _ in job.suspended]
    if not devices or job.state is not State.RUNNING:
        return ""
    more = f" and {len(devices) - SHOWN_DEVICES} more" if len(devices) > SHOWN_DEVICES else ""
    return (
        f"It has no worker on {', '.join(devices[:SHOWN_DEVICES])}{more}, where the last one failed; one is "
        f"started again after a while. Its output: edt logs {job.id}"
    )


def reason_of(why: Mapping[str, Any], job: JobRecord) -> Reason:
    """The allocator's reason, from the form in which the loop stores it."""
    return Reason(
        binding=Binding(why["binding"]),
        share=float(why.get("share", job.share or 0.0)),
        target=int(why.get("target", job.target)),
        path=tuple((str(node), float(share)) for node, share in why.get("path", ())),
        text=str(why.get("text", job.reason)),
        change=str(why.get("change", "")),
    )


def _bounded(reason: Reason, job: JobRecord) -> Reason:
    """The reason, of a job whose bounds were changed beyond those that its launcher was started with."""
    low, high = job.bounds or (job.min, job.max)
    if low <= job.min and job.max <= high:
        return reason
    bounds = f"its launcher keeps to {low} to {high} workers until it is started again"
    if job.would_lose:
        change = f"edt pause --force {job.id}, then edt resume {job.id}: it begins again, with"
        change = f"{change} {job.min} to {job.max}."
    else:
        change = f"edt pause {job.id}, then edt resume {job.id}: then {job.min} to {job.max} counts."
    return replace(reason, text=f"{reason.text}; {bounds}", change=change)


def _apart(job: JobRecord) -> tuple[str, str] | None:
    """Of a job that the allocator does not decide about: how it stands, and what would change that."""
    if job.trouble:
        is_left = "is left as it is until they can be read"
        return (
            f"{job.id} is {job.state} and {is_left}: {job.trouble}",
            "The log of `edt serve` has the error.",
        )
    resume = f"It goes on after: edt resume {job.id}"
    if job.has_ended:
        return f"{job.id} has {job.state}: {job.reason}", ""
    match job.state, job.wanted:
        case State.STOPPING, _:
            return f"{job.id} is stopping: {job.reason}", ""
        case state, Wanted.STOP:
            return f"{job.id} is {state} and is going to be stopped", ""
        case (State.PAUSED | State.PAUSING) as state, Wanted.PAUSE:
            return f"{job.id} is {state}: {job.reason}", resume
        case state, Wanted.PAUSE:
            return f"{job.id} is {state} and is going to be paused", resume
        case (State.PAUSED | State.PAUSING) as state, Wanted.RUN:
            return f"{job.id} is {state} and is going to be resumed", ""
    return None


def _answer(
    job: JobRecord, reason: Reason | None, text: str, change: str, lines: list[str]
) -> dict[str, Any]:
    return {
        "share": None if reason is None else number(reason.share),
        "target": job.target,
        "size": job.size,
        "binding": None if reason is None else reason.binding.value,
        "path": [] if reason is None else [{"node": node, "share": share} for node, share in reason.path],
        "text": text,
        "change": change,
        "lines": lines,
    }
