"""Few resizes inside an owner, and what they may cost others."""

from dataclasses import replace

from hypothesis import given

from edt_launch.allocator.decide import decide, target
from edt_launch.allocator.model import Cluster, Host, Job, Owner
from edt_launch.allocator.stability import band, patience
from edt_launch.allocator.turns import Turns
from edt_launch.allocator.work import gather
from pools import NOW, Pool, pools, settled

EIGHT = tuple(Host(f"h{number}", tuple("01234567")) for number in range(8))


def crowd(count: int, owner: str = "") -> Pool:
    """Jobs of one owner that have divided 64 GPUs."""
    jobs = tuple(Job(f"j{number}", owner, 1, 64, float(number)) for number in range(count))
    return settled(Pool(Cluster(EIGHT), jobs))


def job(name: str, most: int) -> Job:
    return Job(name, "", 1, most, 0.0)


def test_few_others_are_resized_when_a_job_starts_with_its_due_or_ends():
    pool = crowd(8)
    assert {job.size for job in pool.jobs} == {8}
    after = settled(replace(pool, jobs=(*pool.jobs, Job("new", "", 1, 64, NOW))))
    assert after.job("new").size == 7
    changed = [job for job in pool.jobs if after.job(job.id).size != job.size]
    assert len(changed) == 2
    assert min(job.size for job in after.jobs) >= 4
    after = settled(replace(pool, jobs=pool.jobs[1:], now=NOW + 100))
    assert sum(job.size for job in after.jobs) == 64
    assert len([job for job in pool.jobs[1:] if after.job(job.id).size != job.size]) == 1


def test_a_job_takes_what_is_free_when_that_brings_what_the_resize_costs():
    """A third more speed for as long as it has had its size is to be worth five seconds of a resize."""
    pool = settled(Pool(Cluster((Host("h", tuple("0123")),)), (job("a", 1), job("b", 3))))
    assert [each.size for each in pool.jobs] == [1, 3]
    alone = replace(pool, jobs=(replace(pool.job("b"), max=4),), now=NOW + 14)
    assert alone.plan.targets == {"b": 3}
    assert alone.plan.again_at == NOW + 15
    assert replace(alone, now=NOW + 15).plan.targets == {"b": 4}


@given(pools("history", never=["drain"]))
def test_what_is_left_idle_is_taken_at_the_time_that_was_said(pool):
    for _ in range(20):
        work = gather(pool.now, pool.cluster, pool.jobs)
        target(work, Turns(work))
        if sum(work.target) <= sum(pool.plan.targets.values()):
            return
        assert pool.plan.again_at is not None
        pool = settled(replace(pool, now=pool.plan.again_at))
    raise AssertionError("devices are still idle")


def test_who_is_behind_for_long_is_put_right():
    pool = crowd(8)
    pool = settled(replace(pool, jobs=(*pool.jobs, Job("new", "", 1, 64, NOW))))
    slow = min(pool.jobs, key=lambda job: job.size)
    plan = pool.plan
    assert plan.again_at is not None
    wait = patience(pool.cluster.options, slow.resize_cost)
    assert plan.again_at <= pool.now + wait
    early = replace(pool, now=pool.now + wait - 1)
    assert early.plan.targets[slow.id] == slow.size
    late = settled(replace(pool, now=pool.now + wait))
    assert min(job.size for job in late.jobs) >= 0.75 * 64 / 9


def test_an_owner_whose_weight_is_raised_does_not_wait():
    owners = (Owner("", None), Owner("ann"), Owner("bob"))
    jobs = (Job("a", "ann", 1, 4, 0.0), Job("b", "bob", 1, 4, 1.0))
    pool = settled(Pool(Cluster((Host("h", tuple("0123")),), owners), jobs))
    assert [job.size for job in pool.jobs] == [2, 2]
    raised = (owners[0], replace(owners[1], weight=3.0), owners[2])
    later = replace(pool, cluster=replace(pool.cluster, owners=raised), now=NOW + 100)
    plan, reasons = decide(later.now, later.cluster, later.jobs)
    assert plan.targets == {"a": 3, "b": 1}
    assert reasons["a"].text == "grows from 2 to 3 as soon as devices have been handed over"


def test_a_job_of_a_higher_tier_does_not_wait():
    pool = settled(Pool(Cluster((Host("h", tuple("01234")),)), (job("a", 4), replace(job("b", 1), tier=1))))
    raised = replace(pool, jobs=(pool.job("a"), replace(pool.job("b"), max=3)))
    assert raised.plan.targets == {"a": 2, "b": 3}


@given(pools("history", never=["drain"]))
def test_no_resize_leaves_a_job_below_its_band(pool):
    work = gather(pool.now, pool.cluster, pool.jobs)
    target(work, Turns(work))
    targets = pool.plan.targets
    for index, job in enumerate(pool.jobs):
        if work.is_admitted[index]:
            low, high = band(work, index)
            assert low <= work.target[index] <= high
            assert targets[job.id] >= min(low, work.held[index])
