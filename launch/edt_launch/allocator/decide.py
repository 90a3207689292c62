"""The decision: what each job's allocation file is to say, and why.

Pure: the same arguments give the same answer, and the order of jobs, hosts and owners does not matter.

    admission -> real shares -> whole numbers        tier by tier, the highest first
    -> what is worth changing -> devices -> reasons

Each step is described in its module: `admission`, `shares`, `rounding`, `stability`, `placement`, `reasons`.
"""

from collections.abc import Mapping, Sequence

from edt_launch.allocator.admission import admit, is_protected, set_aside
from edt_launch.allocator.model import Cluster, HostDevices, Job, Memory, Plan, Reason
from edt_launch.allocator.placement import place
from edt_launch.allocator.reasons import Reasons
from edt_launch.allocator.rounding import fit_allowed, round_down_the_tree, top_up
from edt_launch.allocator.shares import pour, sum_up
from edt_launch.allocator.stability import Settled, settle
from edt_launch.allocator.usage import balanced, enter
from edt_launch.allocator.work import Work, gather


def decide(now: float, cluster: Cluster, jobs: Sequence[Job]) -> tuple[Plan, Mapping[str, Reason]]:
    """Sizes and devices of all jobs.

    Args:
        now: seconds.
        cluster: machines, owners, constants, and the memory of the last plan.
        jobs: all that want to run or do, with what they hold.

    Returns:
        The plan, and a reason for each job by its id; reasons are made when they are asked for.

    Raises:
        TreeError: the owners do not form a tree, or a figure of theirs is out of range.
        ValueError: two jobs have one id.
    """
    work = gather(now, cluster, jobs)
    entered = enter(work)
    target(work, entered)
    settled = settle(work)
    assignments = place(work, settled.sizes)
    memory = Memory(
        imbalanced_since=settled.imbalanced_since,
        entered=entered,
        reserved=None if work.reserved is None else work.jobs[work.reserved[0]].id,
        owner_steps=work.owner_steps,
        job_steps=work.job_steps,
        pending=pending(work, settled.sizes, assignments),
    )
    plan = Plan(
        assignments=assignments,
        targets={job.id: size for job, size in zip(jobs, settled.sizes, strict=True)},
        memory=memory,
        again_at=_again_at(work, settled),
    )
    return plan, Reasons(work, plan)


def pending(
    work: Work, sizes: Sequence[int], assignments: Mapping[str, tuple[HostDevices, ...]]
) -> dict[str, int]:
    """Sizes that jobs are to have and do not get yet, by their ids."""
    return {
        job.id: size
        for job, held, size in zip(work.jobs, work.held, sizes, strict=True)
        if size != held and sum([len(part.devices) for part in assignments[job.id]]) != size
    }


def target(work: Work, entered: Mapping[str, float]) -> None:
    """Fill in who is admitted, and real and whole shares, whatever jobs hold now."""
    set_aside(work)
    weigh = balanced(work)
    for tier, members in work.tiers or [(0, [])]:
        chosen = admit(work, tier, members, entered)
        sum_up(work, tier, chosen)
        pour(work, weigh)
        round_down_the_tree(work)
    if any(job.allowed is not None for job in work.jobs):
        fit_allowed(work)
    elif len(work.tiers) > 1:
        top_up(work)


def _again_at(work: Work, settled: Settled) -> float | None:
    """When time alone may change the decision."""
    times = list(settled.again_at)
    waiting = [index for index, size in enumerate(settled.sizes) if size == 0 and work.high[index]]
    if waiting:
        times += [
            (job.started or work.now) + job.protected
            for index, job in enumerate(work.jobs)
            if is_protected(work, index)
        ]
        times += [
            since + work.cluster.options.longest_wait
            for index in waiting
            if (since := work.jobs[index].waiting_since) is not None
        ]
    return min((time for time in times if time > work.now), default=None)
