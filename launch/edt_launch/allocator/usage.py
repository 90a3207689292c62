"""What has been used, what would have been due, and what follows from it.

Owners and jobs remember GPU-seconds served and due. An owner's memory halves every half-life; a job's lasts
as long as it does. Two things follow. Whoever had less than its due gets more of the surplus now, up to twice
its weight, and whoever had more gets less; due is only what was asked for, so an idle owner banks nothing.
And when not all jobs fit, they take turns by virtual time: the service that they have attained for each GPU
of their minimum, counted from the virtual time at which they have entered. A newcomer enters at the smallest
of those that run, which is not let go back (start-time fair queueing; Goyal, Vin and Cheng, 1996): no stream
of newcomers starves anyone, and nobody gains by waiting.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf, log

import numpy as np

from edt_launch.allocator.filling import Bools, Floats
from edt_launch.allocator.model import Cluster, Job, Owner, Plan, Usage
from edt_launch.allocator.shares import Weigh, plain, pour, sum_up
from edt_launch.allocator.tree import Layer
from edt_launch.allocator.work import Work, gather

STEPS = 4
"""Steps in which a weight is doubled or halved."""
HYSTERESIS = 0.75
"""Steps that the balance must be off before the step changes: half a step, and more against chatter."""


def balanced(work: Work) -> Weigh:
    """Weights, raised or lowered by remembered use in quarters of a power of two; notes the steps."""
    memory, settling = work.cluster.memory, work.cluster.options.settling
    factors = 2.0 ** (np.arange(-STEPS, STEPS + 1) / STEPS)
    usages, given = [job.usage for job in work.jobs], plain(work)
    due_to_jobs = np.array([usage.entitlement for usage in usages], dtype=np.float64)
    served_to_jobs = np.array([usage.service for usage in usages], dtype=np.float64)
    steps_of_jobs = np.array([memory.job_steps.get(job, 0) for job in work.ids], dtype=np.int64)

    def weigh(layer: Layer, totals: Floats, is_divided: Bools) -> Floats:
        children, jobs, parents = layer.children, layer.jobs, layer.parents
        weights = given(layer, totals, is_divided)
        scale = settling * np.maximum(totals, 1.0)[parents] / np.bincount(parents, weights)[parents]
        due = np.concatenate([[child.usage.entitlement for child in children], due_to_jobs[jobs]])
        served = np.concatenate([[child.usage.service for child in children], served_to_jobs[jobs]])
        before = np.concatenate(
            [[memory.owner_steps.get(child.name, 0) for child in children], steps_of_jobs[jobs]]
        )
        wanted = STEPS * (due - served) / (due + served + scale * weights)
        steps = np.where(np.abs(wanted - before) <= HYSTERESIS, before, np.rint(wanted)).astype(np.int64)
        steps[~is_divided[parents]] = 0
        for at, child in enumerate(children):
            if is_divided[parents[at]]:  # the same for all tiers
                steps[at] = work.owner_steps.setdefault(child.name, int(steps[at]))
        own = steps[len(children) :]
        is_off = own != 0
        work.job_steps.update(
            zip(map(work.ids.__getitem__, jobs[is_off].tolist()), own[is_off].tolist(), strict=True)
        )
        return weights * factors[steps + STEPS]

    return weigh


def enter(work: Work) -> tuple[Mapping[str, float], float]:
    """At which virtual time each job has entered, by its id, and the one at which newcomers enter.

    That is the smallest virtual time of those that run, and never less than it was. Else a job that has had
    its turn could be overtaken for ever.
    """
    entered, clock = work.cluster.memory.entered, work.cluster.memory.clock
    newcomers = [index for index, job in enumerate(work.ids) if job not in entered]
    if not newcomers and len(entered) == len(work.ids) and all(work.runs):
        return entered, clock
    now = {job: entered[job] for job in work.ids if job in entered}
    running = [
        now[job.id] + job.usage.attained
        for job, runs in zip(work.jobs, work.runs, strict=True)
        if runs and job.id in now
    ]
    clock = max(clock, min(running, default=clock))
    now.update((work.ids[index], clock - work.jobs[index].usage.attained) for index in newcomers)
    return now, clock


def remember(
    now: float, cluster: Cluster, jobs: Sequence[Job], plan: Plan
) -> tuple[tuple[Owner, ...], tuple[Job, ...]]:
    """Owners and jobs with their usage brought up to `now`.

    Call it before whatever changes sizes, with the jobs as they were since the last call, which have used the
    sizes that they hold. What was due is the real share of everybody who wanted to run, by plain weights.

    For a job that weighs twice as much as its owner's jobs do on average attained service grows half as fast,
    so that it gets twice as many turns; the owner's jobs together get no more than with equal weights. What
    has been attained is kept when weights or minimums change.
    """
    work = gather(now, cluster, jobs)
    paces = _paces(work)
    _entitle(work)
    used = work.sums(work.held)
    for node in reversed(work.nodes):
        if node.parent is not None:
            used[node.parent.position] += used[node.position]
    nodes = {node.name: node for node in work.nodes}
    owners = []
    for owner in cluster.owners:
        before = owner.usage if owner.usage.at else replace(owner.usage, at=now)
        node = nodes[owner.name]
        usage = advance(before, now, used[node.position], node.share, owner.half_life, pace=1.0)
        owners.append(replace(owner, usage=usage))
    known = []
    for job, held, share, pace in zip(jobs, work.held, work.share, paces, strict=True):
        before = replace(job.usage, at=max(job.usage.at, job.submitted))
        known.append(replace(job, usage=advance(before, now, held, share, inf, pace)))
    return tuple(owners), tuple(known)


def _paces(work: Work) -> list[float]:
    """Attained service of each job for a GPU-second."""
    weights: dict[str, list[float]] = {}
    for job, least in zip(work.jobs, work.low, strict=True):
        if least:
            weights.setdefault(job.owner, []).append(job.weight)
    means = {owner: sum(of_jobs) / len(of_jobs) for owner, of_jobs in weights.items()}
    return [
        means[job.owner] / job.weight / least if least else 0.0
        for job, least in zip(work.jobs, work.low, strict=True)
    ]


def _entitle(work: Work) -> None:
    """Real shares by plain weights, as if every job were in, had no minimum, and tiers were equal."""
    members = [index for index, most in enumerate(work.high) if most]
    work.low = [0] * len(work.jobs)
    work.tiers = [(0, members)]
    sum_up(work, 0, members)
    pour(work, plain(work))


def advance(usage: Usage, now: float, used: float, due: float, half_life: float, pace: float = 0.0) -> Usage:
    """Usage after a time in which `used` GPUs were used and `due` were due, older use fading.

    Args:
        usage: up to now.
        now: the end of that time.
        used: GPUs.
        due: GPUs.
        half_life: seconds.
        pace: service attained for a GPU-second.
    """
    passed = now - usage.at
    if passed <= 0:
        return usage
    if half_life < inf:
        kept = 0.5 ** (passed / half_life)
        weight = half_life / log(2) * (1 - kept)
    else:
        kept, weight = 1.0, passed
    return Usage(
        usage.service * kept + used * weight,
        usage.entitlement * kept + due * weight,
        now,
        usage.attained + used * pace * passed,
    )
