"""Which jobs do nothing with their devices: these keep their minimum, and others get the rest. Pure.

A job does something when it completes a step, and when one of its GPUs computes; the latter is known of the
service's own machine only. Nothing is concluded about a job of which neither is known.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from edt_launch.allocator.model import Binding, Job, Preemption, Reason
from edt_launch.allocator.work import bounds
from edt_launch.core.text.durations import duration
from edt_launch.service.jobs import allocator_input
from edt_launch.service.jobs.loop.observed import ObservedJob
from edt_launch.service.jobs.states import State

Loads = Mapping[tuple[str, str], float]
"""The percentage of time in which a device computes, by host and device, as far as that is known."""


def active_at(job: ObservedJob) -> float | None:
    """When it did something last, unix seconds; None if that is not known."""
    known = [at for at in (job.progress.stepped, job.computed) if at is not None]
    return max(*known, job.record.running_since or 0.0) if known else None


def is_idle(now: float, job: ObservedJob, timeout: float) -> bool:
    """Whether it has done nothing for `timeout` seconds, 0 for any time, and may be resized."""
    at = active_at(job)
    if not timeout or at is None or job.is_hidden or job.record.state is not State.RUNNING:
        return False
    may_shrink = allocator_input.preemption(job.record, can_save=job.can_save) is not Preemption.NONE
    return may_shrink and now - at >= timeout


def at_minimum(job: Job) -> Job:
    """A job that is to have no more than it needs."""
    return replace(job, max=bounds(job)[0] or job.max)


def explained(reason: Reason | None, timeout: float) -> Reason | None:
    """The allocator's reason for the size of an idle job, which was to have its minimum."""
    if reason is None or reason.binding not in (Binding.MAX, Binding.HAND_OVER):
        return reason
    how = f"has its minimum of {reason.target}" if reason.binding is Binding.MAX else reason.text
    why = f"it has completed no step, and no GPU of it has computed, for {duration(timeout)} or longer"
    return replace(reason, text=f"{how}: {why}", change="It grows again when it goes on.")


def computed(
    now: float, jobs: Iterable[ObservedJob], loads: Loads, before: Mapping[str, float]
) -> dict[str, float]:
    """When the GPUs of jobs were seen computing last, by the jobs' ids; a job that is new has just been.

    Only of jobs all of whose devices are known.

    Args:
        now: unix seconds.
        jobs: all of them.
        loads: of devices, now.
        before: what was known until now.
    """
    found: dict[str, float] = {}
    for job in jobs:
        names = [(host.host, device) for host in job.grant.held for device in host.devices]
        if job.record.state is State.RUNNING and names and all(name in loads for name in names):
            is_computing = any(loads[name] > 0 for name in names)
            found[job.record.id] = now if is_computing else before.get(job.record.id, now)
    return found
