"""What the allocator is asked: rows, files and events in its terms."""

from collections.abc import Sequence
from dataclasses import replace

from edt_launch.allocator.model import Cluster, Job, Plan
from edt_launch.allocator.usage import remember
from edt_launch.jobs import performance_model
from edt_launch.jobs.device_grant import in_use, leaving
from edt_launch.jobs.observed import AllocationRound, ObservedJob, ObservedState
from edt_launch.service.database import mapping
from edt_launch.service.states import State, Wanted

RUNS = frozenset({State.STARTING, State.RUNNING})
"""States in which a job's number of workers may be changed."""


def inputs(
    now: float, observed: ObservedState, jobs: Sequence[ObservedJob]
) -> tuple[Cluster, tuple[Job, ...]]:
    """What to decide from, with remembered usage brought up to `now`.

    Args:
        now: unix seconds.
        observed: everything there is to know.
        jobs: those that have not ended, as they are now.
    """
    cluster = Cluster(
        tuple(map(mapping.host, observed.hosts)),
        tuple(mapping.owners(observed.shares, {job.record.owner for job in jobs})),
        observed.options,
        observed.memory if observed.last is None else observed.last.plan.memory,
    )
    wanted = tuple(as_job(job, observed.protected) for job in jobs if _counts(job))
    was = observed.last or AllocationRound(cluster, wanted, Plan({}, {}, observed.memory))
    owners, used = remember(now, was.cluster, was.jobs, was.plan)
    of_owners = {owner.name: owner.usage for owner in owners}
    of_jobs = {job.id: job.usage for job in used}
    known = (replace(owner, usage=of_owners.get(owner.name, owner.usage)) for owner in cluster.owners)
    return replace(cluster, owners=tuple(known)), tuple(
        replace(job, usage=of_jobs.get(job.id, job.usage)) for job in wanted
    )


def _counts(job: ObservedJob) -> bool:
    """Whether it wants devices, or may be using some."""
    return job.launcher.is_alive or job.launcher.has_leftovers or is_wanted(job)


def is_wanted(job: ObservedJob) -> bool:
    """Whether the allocator may give it devices."""
    record, launcher = job.record, job.launcher
    if record.state is State.QUEUED:
        is_free = not (launcher.is_alive or launcher.has_leftovers or job.is_hidden)
        return record.wanted is Wanted.RUN and is_free
    return record.state in RUNS and launcher.is_alive


def as_job(job: ObservedJob, protected: float) -> Job:
    """A job as the allocator sees it; one that is on its way out wants nothing, and holds what it uses."""
    record, run = job.record, job.run
    one = replace(
        mapping.job(record, protected),
        resize_cost=performance_model.resize_cost(job.progress),
        speedup=performance_model.speedup(job.progress),
        held=(),
        leaving=(),
        started=None,
        waiting_since=None,
    )
    if not is_wanted(job):
        return replace(one, min=0, max=0, allowed=None, leaving=in_use(job.grant, run))
    if record.state is State.QUEUED:
        return replace(one, waiting_since=record.waiting_since or record.submitted)
    least, most = _limits(job)
    return replace(
        one,
        min=least,
        max=most,
        held=job.grant.held,
        leaving=leaving(job.grant, run),
        started=record.running_since or record.submitted,
    )


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
