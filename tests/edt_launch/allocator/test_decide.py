"""The invariants of decisions, tried on random pools."""

from collections import Counter
from dataclasses import replace
from math import floor

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from edt_launch.allocator.decide import target
from edt_launch.allocator.filling import SLACK
from edt_launch.allocator.model import Cluster, Host, HostDevices, Job, Options, Owner, Preemption, Usage
from edt_launch.allocator.speedup import gain
from edt_launch.allocator.turns import Turns
from edt_launch.allocator.work import Work, bounds, gather
from pools import NOW, Pool, Tree, applied, build, pairs, pools, settled, size


def fair(pool: Pool) -> Work:
    """Shares and whole numbers by fairness alone."""
    work = gather(pool.now, pool.cluster, pool.jobs)
    target(work, Turns(work))
    return work


@given(pools(never=["allowed", "dips", "unlent"]))
def test_no_gpu_idles_but_for_jobs_whose_growth_does_not_pay_yet(pool):
    targets = pool.plan.targets
    demand = {job.id: bounds(job)[1] if targets[job.id] else 0 for job in pool.jobs}
    idle = min(pool.cluster.size, Tree(pool).totals(demand, is_limited=True)[""]) - sum(targets.values())
    assert idle >= 0
    if not idle:
        return
    due = {job.id: whole for job, whole in zip(pool.jobs, fair(pool).target, strict=True)}
    behind = [job for job in pool.jobs if targets[job.id] < due[job.id]]
    assert idle <= sum(due[job.id] - targets[job.id] for job in behind)
    for job in behind:
        size = targets[job.id]
        assert job.started is not None
        lasted = pool.now - max(job.started, job.resized or 0.0)
        assert gain(job, size, min(due[job.id], size + idle)) * lasted < job.resize_cost + SLACK


@given(pools("dips", "speedup", never=["history", "unlent"]))
def test_no_gpu_idles_that_would_bring_a_job_to_the_next_number_offered(pool):
    """Newly made pools, in which no growth waits until it pays."""
    targets, tree = pool.plan.targets, Tree(pool)
    work = gather(pool.now, pool.cluster, pool.jobs)
    limits = {owner.name: min(owner.limit, pool.cluster.size) for owner in pool.cluster.owners}
    have = tree.totals(targets)
    for index, job in enumerate(pool.jobs):
        count = targets[job.id]
        larger = work.next_offered(index, count)
        if count and larger is not None and larger <= work.high[index]:
            assert any(have[name] + larger - count > limits[name] for name in tree.path(job.owner)), job


@given(pools("allowed"))
def test_a_job_has_a_number_that_it_can_run_with(pool):
    plan, up = pool.plan, {host.name for host in pool.cluster.hosts if host.is_up}
    for job in pool.jobs:
        count = plan.targets[job.id]
        assert count == 0 or job.min <= count <= job.max
        assert count == 0 or job.allowed is None or count in job.allowed
        now = size(plan.assignments[job.id])
        lost = any(part.host not in up for part in job.held)
        assert now == 0 or now >= job.min or lost


@given(pools(never=["allowed", "speedup"]))
def test_every_node_is_less_than_one_gpu_from_its_real_share(pool):
    work = fair(pool)
    for index, share in enumerate(work.share):
        if work.is_admitted[index]:
            assert abs(work.target[index] - share) < 1 + SLACK
    whole = {job.id: work.target[index] for index, job in enumerate(pool.jobs)}
    sums = Tree(pool).totals(whole)
    for node in work.nodes:
        below = sum(other.withheld for other in work.nodes if node in other.path)
        assert abs(sums[node.name] + below - node.share) < 1 + SLACK


@given(pools("guarantees", "small minimums", never=["allowed", "dips", "unlent", "limits", "drain"]))
def test_a_guarantee_is_there_for_who_asks(pool):
    own = {owner.name: owner.guarantee for owner in pool.cluster.owners}
    parents = Tree(pool).parents
    assume(sum(own.values()) <= pool.cluster.size)
    assume(all(parents[name] == "" for name, guarantee in own.items() if guarantee))
    assume(pool.cluster.options.preemption is Preemption.TO_ZERO or len({job.tier for job in pool.jobs}) == 1)
    targets = pool.plan.targets
    wanted = Tree(pool).totals({job.id: job.max for job in pool.jobs})
    have = Tree(pool).totals(targets)
    for name, guarantee in own.items():
        if wanted[name] >= guarantee:
            assert have[name] >= floor(guarantee)


# Tiers that have to agree; changes that are undone, or leave more given out than there is.
@example(build(395, 3, 4, 4, {"allowed", "dips", "fixed order", "history", "limits", "unlent"}))
@example(build(684, 6, 2, 4, {"history", "small minimums", "speedup"}))
@example(build(421, 8, 4, 1, {"dips", "fixed order", "guarantees", "history", "tiers"}))
@example(build(287, 3, 3, 3, {"allowed", "history", "speedup", "unlent", "usage"}))
@given(pools(never=["drain"]))
def test_deciding_again_changes_nothing(pool):
    plan = pool.plan
    assert pool.plan == plan
    under_way = applied(pool, plan, is_released=False)
    again = under_way.plan
    assert again.targets == plan.targets
    assert again.assignments == plan.assignments
    done = applied(applied(pool, plan))
    assert done.plan.targets == plan.targets
    assert {job.id: size(job.held) for job in done.jobs} == plan.targets


def test_a_job_of_a_lower_tier_that_has_started_takes_nothing_from_a_higher_one():
    owners = (Owner("", None), *(Owner(name, guarantee=2) for name in "abc"), Owner("d"))
    options = Options(preemption=Preemption.NONE)

    def running(name: str, owner: str, devices: str) -> Job:
        return Job(name, owner, 1, 9, 0.0, held=(HostDevices("h", tuple(devices)),), started=0.0)

    high = replace(running("high", "a", "01"), tier=1, started=NOW - 10.0, resize_cost=60.0)
    odd = replace(running("odd", "c", "5"), allowed=(1, 4))
    new = Job("new", "d", 1, 1, NOW, waiting_since=NOW)
    cluster = Cluster((Host("h", tuple("012345678")),), owners, options)
    pool = Pool(cluster, (high, running("low", "b", "234"), odd, new))
    assert pool.plan.targets == {"high": 2, "low": 3, "odd": 1, "new": 1}
    assert pool.plan.memory.due == {"high": 4}
    after = applied(pool)
    assert after.plan.targets == pool.plan.targets


@given(pools("drain"))
def test_hand_overs_come_to_an_end_when_hosts_are_drained(pool):
    done = settled(pool)
    assert applied(done) == done


@given(pools("history"), st.booleans())
def test_no_device_is_given_out_twice_and_survivors_keep_theirs(pool, is_released):
    pool = applied(pool, is_released=is_released)
    up = {host.name: host for host in pool.cluster.hosts if host.is_up}
    plan = pool.plan
    used = Counter(pair for parts in plan.assignments.values() for pair in pairs(parts))
    assert set(used.values()) <= {1}
    for job in pool.jobs:
        parts = plan.assignments[job.id]
        for part in parts:
            assert part.host in up
            assert set(part.devices) <= set(up[part.host].devices)
            assert part.devices
        held = {pair for other in pool.jobs if other is not job for pair in pairs(other.held)}
        others = held | {pair for other in pool.jobs for pair in pairs(other.leaving)}
        assert not others.intersection(pairs(parts))
        alive = {part.host: part.devices for part in job.held if part.host in up}
        if not parts or not alive:
            continue
        kept = [part for part in parts if part.host in alive]
        assert kept
        for part in kept:
            shorter = min(len(part.devices), len(alive[part.host]))
            assert part.devices[:shorter] == alive[part.host][:shorter]
        for part in parts:
            if part.host not in alive or len(part.devices) > len(alive[part.host]):
                assert not up[part.host].is_draining or not pool.job(job.id)
        first = next(iter(alive))
        if first in {part.host for part in parts}:
            assert parts[0].host == first


@given(
    pools("history", never=["drain"]), st.lists(st.sampled_from(Preemption), min_size=10, max_size=10),
    st.integers(0, 3),
)  # fmt: skip
def test_nothing_is_taken_from_a_job_that_forbids_it(pool, preemption, drained):
    """Whoever asks: other owners and tiers, a limit that came later, a host that is drained."""
    jobs = tuple(replace(job, preemption=kind) for job, kind in zip(pool.jobs, preemption, strict=False))
    up = {host.name for host in pool.cluster.hosts if host.is_up}
    hosts = tuple(replace(host, is_draining=at == drained) for at, host in enumerate(pool.cluster.hosts))
    owners = tuple(replace(owner, limit=min(owner.limit, 2)) for owner in pool.cluster.owners)
    pool = Pool(replace(pool.cluster, hosts=hosts, owners=owners), jobs, pool.now + 10_000)
    for _ in range(3):
        plan = pool.plan
        for job in pool.jobs:
            before = {at for at in pairs(job.held) if at[0] in up}
            now = plan.assignments[job.id]
            if before and job.preemption is Preemption.NONE:
                assert before <= {*pairs(now)}
            elif len(before) >= job.min and job.preemption is Preemption.TO_MIN:
                assert size(now) >= job.min
        used = [at for job in pool.jobs for at in pairs(plan.assignments[job.id])]
        assert len(used) == len({*used})
        pool = applied(pool, plan)
    settled(pool)


@given(pools("limits"))
def test_no_limit_is_exceeded(pool):
    have = Tree(pool).totals(pool.plan.targets)
    for owner in pool.cluster.owners:
        assert have[owner.name] <= owner.limit
    assert have[""] <= pool.cluster.size


@given(pools("tiers", never=["allowed", "dips", "guarantees", "limits", "unlent"]))
def test_a_lower_tier_keeps_no_more_than_its_floor_while_a_higher_one_is_short(pool):
    targets, preemption = pool.plan.targets, pool.cluster.options.preemption
    up = {host.name for host in pool.cluster.hosts if host.is_up}
    whole = zip(pool.jobs, fair(pool).target, strict=True)  # what is free may be left to a job for a while
    highest = max((job.tier for job, due in whole if targets[job.id] > 0 and due < job.max), default=0)
    kept = 0
    for job in pool.jobs:
        running = sum(len(part.devices) for part in job.held if part.host in up)
        if running and job.tier < highest and preemption is not Preemption.TO_ZERO:
            kept += max(running, job.min) if preemption is Preemption.NONE else job.min
    assert sum(targets[job.id] for job in pool.jobs if job.tier < highest) <= kept


# Of an owner that lends nothing less is kept unused when its jobs ask for more.
@given(
    pools(never=["allowed", "history", "speedup", "fixed order", "unlent"]),
    st.integers(0),
    st.integers(1, 20),
)
def test_asking_for_more_than_the_share_changes_nothing(pool, pick, more):
    targets = pool.plan.targets
    short = [job for job in pool.jobs if 0 < targets[job.id] < job.max]
    assume(short)
    greedy = short[pick % len(short)]
    jobs = tuple(replace(job, max=job.max + more) if job is greedy else job for job in pool.jobs)
    after = replace(pool, jobs=jobs).plan.targets
    owners = {job.id: job.owner for job in pool.jobs}
    assert after[greedy.id] <= targets[greedy.id] + 1
    assert all(after[name] == targets[name] for name, owner in owners.items() if owner != greedy.owner)


@given(pools(), st.randoms(use_true_random=False))
def test_the_order_of_events_is_irrelevant(pool, random):
    jobs, owners = list(pool.jobs), list(pool.cluster.owners)
    random.shuffle(jobs)
    random.shuffle(owners)
    other = Pool(replace(pool.cluster, owners=tuple(owners)), tuple(jobs))
    plan, shuffled = pool.plan, other.plan
    assert shuffled.targets == plan.targets
    assert shuffled.assignments == plan.assignments
    assert shuffled.again_at == plan.again_at


def test_what_a_lost_host_took_is_replaced():
    hosts = (Host("a", tuple("01")), Host("b", tuple("01")), Host("c", tuple("01")))
    pool = settled(Pool(Cluster(hosts), (Job("j", "", 1, 4, 0.0),)))
    assert [part.host for part in pool.jobs[0].held] == ["a", "b"]
    lost = (replace(hosts[0], is_up=False), *hosts[1:])
    after = settled(replace(pool, cluster=replace(pool.cluster, hosts=lost)))
    assert [part.host for part in after.jobs[0].held] == ["b", "c"]


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_remembered_use_weighs_the_same_whatever_the_scale_of_weights(scale):
    ann = Owner("ann", weight=scale, usage=Usage(0.0, 1e6, NOW))
    bob = Owner("bob", weight=scale, usage=Usage(1e6, 0.0, NOW))
    cluster = Cluster((Host("h", tuple("0123456789")),), (Owner("", None), ann, bob))
    pool = Pool(cluster, (Job("a", "ann", 1, 10, 0.0), Job("b", "bob", 1, 10, 0.0)))
    assert pool.plan.targets == {"a": 8, "b": 2}


def test_two_jobs_with_one_id_are_refused():
    pool = Pool(Cluster((Host("h", tuple("0123")),)), (Job("a", "", 1, 1, 0.0), Job("a", "ann", 1, 2, 0.0)))
    with pytest.raises(ValueError, match="two jobs have the id 'a'"):
        _ = pool.plan
