"""The decision: what each job's allocation file is to say, and why.

Pure: the same arguments give the same answer. The order of jobs and owners does not matter; of hosts that are
as good as each other, the first one is taken.

    admission -> real shares -> whole numbers        tier by tier, the highest first
    -> what is worth changing -> devices -> reasons

Each step is described in its module: `admission`, `shares`, `rounding`, `stability`, `placement`, `reasons`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import inf

from edt_launch.allocator.admission import admit, reservation_times, reserve
from edt_launch.allocator.devices.packing import Packed, is_quiet, pack
from edt_launch.allocator.devices.placement import place
from edt_launch.allocator.model import Cluster, HostDevices, Job, Memory, Move, Plan, Reason
from edt_launch.allocator.reasons import Reasons
from edt_launch.allocator.rounding import quantized, round_down_the_tree, top_up
from edt_launch.allocator.shares import Weigh, pour, sum_up
from edt_launch.allocator.stability import Settled, settle
from edt_launch.allocator.turns import Turns, is_protected, is_resting, protected
from edt_launch.allocator.usage import balanced
from edt_launch.allocator.work import Work, gather

MAX_ROUNDS = 5
"""Times that a decision with several tiers is tried again until it agrees with itself."""


def decide(now: float, cluster: Cluster, jobs: Sequence[Job]) -> tuple[Plan, Mapping[str, Reason]]:
    """Sizes and devices of all jobs that want to run, or do.

    Returns:
        The plan, and a reason for each job by its id; reasons are made when they are asked for.

    Raises:
        TreeError: the owners do not form a tree, or a figure of theirs is out of range.
        ValueError: two jobs have one id, or a figure of a job is out of range.
    """
    work = gather(now, cluster, jobs)
    turns = Turns(work)
    target(work, turns)
    settled = settle(work)
    packed, is_calm = Packed(), is_quiet(work, settled.sizes)
    if is_calm:
        packed = pack(work)
        assignments = {job.id: job.held for job in jobs}
        assignments.update(packed.parts)
    else:
        assignments = place(work, settled.sizes)
    memory = Memory(
        imbalanced_since=settled.imbalanced_since,
        behind_since=settled.behind_since,
        entered=turns.entered,
        clock=turns.clock,
        reserved=_reserved(work),
        pinned=_pinned(work),
        owner_steps={name: step for name, step in work.owner_steps.items() if step},
        job_steps=work.job_steps,
        pending=_pending(work, settled.sizes, assignments, packed.parts),
        due=_due(work, settled.sizes),
        suspended=_suspended(work, settled.sizes),
        moves=_moves(work, settled.sizes, packed),
        busy_at=cluster.memory.busy_at if is_calm else now,
    )
    targets = dict(zip(work.ids, settled.sizes, strict=True))
    if len(targets) < len(jobs):
        repeated = Counter(job.id for job in jobs).most_common(1)[0][0]
        raise ValueError(f"two jobs have the id {repeated!r}: ids have to be unique")
    plan = Plan(assignments, targets, memory, _again_at(work, turns, settled, packed))
    return plan, Reasons(work, plan)


def _due(work: Work, sizes: Sequence[int]) -> dict[str, int]:
    """Whole numbers by fairness of jobs that have others for now, by their ids."""
    if sizes == work.target:
        return {}
    figures = zip(work.ids, work.target, sizes, strict=True)
    return {job: due for job, due, size in figures if due != size}


def _pending(
    work: Work,
    sizes: Sequence[int],
    assignments: Mapping[str, tuple[HostDevices, ...]],
    moved: Mapping[str, tuple[HostDevices, ...]],
) -> dict[str, int]:
    """Sizes that jobs are to have and do not get yet, by their ids."""
    figures = zip(work.ids, work.held, sizes, strict=True)
    changed = {job: size for job, held, size in figures if size != held or job in moved}
    return {
        job: size
        for job, size in changed.items()
        if sum([len(part.devices) for part in assignments[job]]) != size
    }


def _moves(work: Work, sizes: Sequence[int], packed: Packed) -> dict[str, Move]:
    """Jobs that move onto fewer hosts, by their ids, until they have got there."""
    known = work.cluster.memory.moves
    if not known:
        return packed.moves
    figures = zip(work.ids, work.held, sizes, strict=True)
    under_way = {job: known[job] for job, held, size in figures if job in known and held != size}
    return under_way | packed.moves


def _suspended(work: Work, sizes: Sequence[int]) -> dict[str, float]:
    """When jobs were suspended that are to stay so for a while, by their ids."""
    waiting = [index for index, size in enumerate(sizes) if not size]
    known = work.cluster.memory.suspended
    return {
        job.id: known[job.id] if is_known else work.now
        for index in waiting
        for job in [work.jobs[index]]
        if (is_known := is_resting(work, job)) or work.held[index]
    }


def target(work: Work, turns: Turns) -> None:
    """Fill in who is admitted, and real and whole shares, whatever jobs hold now.

    Where tiers meet guarantees, a job that starts may change what is kept for whom. So with several tiers
    it is decided again as if everybody had its due, until the next decision would find nothing to change;
    that begins with what everybody is due by this one.
    """
    if len(work.tiers) <= 1:
        _fill_in(work, turns)
        return
    soon, runs = work.soon, work.runs
    work.soon = work.last
    _fill_in(work, turns)
    for _ in range(MAX_ROUNDS):
        whole = work.target
        work.soon = work.last = whole
        work.runs = [size > 0 for size in whole]
        work.last_pinned = {job: number for number, job in enumerate(_pinned(work))}
        work.last_reservation = _reserved(work)
        _fill_in(work, turns)
        if work.target == whole:
            break
    work.soon, work.runs = soon, runs


def _fill_in(work: Work, turns: Turns) -> None:
    reserve(work)
    _pass(work, turns)


def _pinned(work: Work) -> tuple[str, ...]:
    return tuple(work.jobs[index].id for index in work.pinned)


def _reserved(work: Work) -> str | None:
    return None if work.reservation is None else work.jobs[work.reservation[0]].id


def _pass(work: Work, turns: Turns) -> None:
    """Tier by tier, each on what higher ones have left, and lower ones keep."""
    weigh = balanced(work)
    work.reservation = None
    work.owner_steps, work.job_steps = {}, {}
    work.is_admitted = [False] * len(work.jobs)
    work.target = [0] * len(work.jobs)
    for tier, members in work.tiers or [(0, [])]:
        chosen = admit(work, tier, members, turns)
        sum_up(work, tier, chosen)
        pour(work, weigh)
        fair = _give_back(work, tier, chosen, weigh) if work.is_stepwise else {}
        round_down_the_tree(work)
        for index, share in fair.items():
            work.share[index] = share
        if work.is_stepwise:
            top_up(work, chosen, work.claims)
    if work.is_stepwise or len(work.tiers) > 1:
        top_up(work, range(len(work.jobs)), {})


def _give_back(work: Work, tier: int, chosen: Sequence[int], weigh: Weigh) -> dict[int, float]:
    """Pour again without what jobs that run with some numbers only cannot use of their shares.

    Returns:
        The shares that these jobs had.
    """
    low, high = work.low, work.high
    sizes = quantized(work)
    shares = {index: work.share[index] for index in sizes}
    work.low = [sizes.get(index, least) for index, least in enumerate(low)]
    work.high = [sizes.get(index, most) for index, most in enumerate(high)]
    sum_up(work, tier, chosen)
    pour(work, weigh)
    work.low, work.high = low, high
    return shares


def _again_at(work: Work, turns: Turns, settled: Settled, packed: Packed) -> float | None:
    """When time alone may change the decision."""
    times = [*settled.again_at, *packed.again_at]
    if any(size == 0 and most for size, most in zip(settled.sizes, work.high, strict=True)):
        times += [
            (job.started or work.now) + protected(work, job)
            for index, job in enumerate(work.jobs)
            if is_protected(work, index)
        ]
        runs = [size > 0 for size in settled.sizes]
        for _, members in work.tiers:
            times += reservation_times(work, members, turns, runs)
        known = work.cluster.memory.suspended
        times += [known[job.id] + protected(work, job) for job in work.jobs if job.id in known]
    return min((time for time in times if work.now < time < inf), default=None)
