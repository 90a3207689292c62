"""Which jobs run, when not all of their minimums fit."""

from collections import Counter
from dataclasses import replace

import pytest

from edt_launch.allocator.model import Cluster, Host, Job, Options, Owner, Policy, Preemption, Usage
from pools import NOW, Pool, settled, waited


@pytest.mark.parametrize(
    "preemption,left", [(Preemption.NONE, 4), (Preemption.TO_MIN, 2), (Preemption.TO_ZERO, 0)], ids=str
)
def test_a_higher_tier_takes_what_it_may(preemption, left):
    cluster = Cluster((Host("h", tuple("01234567")),), options=Options(preemption=preemption))
    pool = settled(Pool(cluster, (Job("low", "", 2, 4, 0.0),)))
    pool = replace(pool, jobs=(*pool.jobs, Job("high", "", 1, 8, 1.0, tier=1)))
    assert pool.plan.targets == {"low": left, "high": 8 - left}


def test_the_place_of_a_job_whose_turn_ends_is_not_for_higher_tiers():
    cluster = Cluster((Host("h", tuple("01234567")),), options=Options(preemption=Preemption.TO_MIN))
    pool = settled(Pool(cluster, (Job("a", "", 4, 4, NOW, waiting_since=NOW),)))
    high = Job("high", "", 1, 8, NOW, tier=1, waiting_since=NOW)
    pool = settled(replace(pool, jobs=(*pool.jobs, high)))
    pool = settled(replace(pool, jobs=(*pool.jobs, Job("b", "", 4, 4, NOW, waiting_since=NOW))))
    ran = Counter()
    for _ in range(100):
        pool = settled(waited(pool, 100.0))
        sizes = {job.id: job.size for job in pool.jobs}
        assert (sizes["high"], sizes["a"] + sizes["b"]) == (4, 4)
        ran.update(name for name in "ab" if sizes[name])
    assert min(ran["a"], ran["b"]) > 20


@pytest.mark.parametrize("limit,guarantee", [(3, 4.0), (3, 9.0), (8, 6.0)])
def test_what_an_owner_does_not_lend_is_there_for_its_own_jobs(limit, guarantee):
    owners = (
        Owner("", None),
        Owner("ann", limit=limit, guarantee=guarantee, lends=False),
        Owner("bob", guarantee=4.0, lends=False),
    )
    pool = Pool(Cluster((Host("h", tuple("01234567")),), owners), (Job("j", "ann", 1, 1, NOW),))
    assert pool.plan.targets == {"j": 1}


def test_a_reservation_lets_a_large_job_in():
    cluster = Cluster((Host("h", tuple("0123")),))
    small = tuple(Job(f"s{number}", "", 1, 1, 0.0) for number in range(4))
    pool = replace(settled(Pool(cluster, small)), now=NOW + 301)
    large = Job("large", "", 4, 4, 1.0, usage=Usage(1.0, 1.0, NOW, 0.25))
    fresh = replace(small[0], id="fresh", waiting_since=NOW)
    longest = 2 * 2 * pool.cluster.options.turn  # the minimums of others, 5, fill the pool more than once
    for wait, workers in (longest - 1, 0), (longest, 4):
        waiting = replace(large, waiting_since=pool.now - wait)
        assert settled(replace(pool, jobs=(*pool.jobs, waiting, fresh))).job("large").size == workers


@pytest.mark.parametrize(
    "immovable,tier",
    [(Job("a", "ann", 4, 4, NOW), 0), (Job("a", "", 4, 4, NOW, tier=2), 0), (Job("a", "", 4, 4, NOW), 1)],
    ids=["guaranteed", "of a higher tier", "minimum of a lower tier"],
)
def test_nothing_is_kept_for_a_job_that_could_not_start_in_spite_of_that(immovable, tier):
    owners = Owner("", None), Owner("ann", guarantee=4.0), Owner("bob")
    start = settled(Pool(Cluster((Host("h", tuple("01234567")),), owners), (immovable,)))
    large = Job("large", "bob", 6, 6, NOW, tier=tier, waiting_since=NOW)
    late = waited(settled(replace(start, jobs=(*start.jobs, large))), 3 * Options().longest_wait)
    small = tuple(
        Job(f"s{number}", "bob", 1, 1, late.now, tier=tier, waiting_since=late.now) for number in range(4)
    )
    pool = settled(replace(late, jobs=(*late.jobs, *small)))
    assert pool.plan.targets == {"a": 4, "large": 0, "s0": 1, "s1": 1, "s2": 1, "s3": 1}
    left = waited(replace(pool, jobs=tuple(job for job in pool.jobs if job.id != "a")), 1.0)
    assert left.plan.memory.reserved == "large"  # as soon as it could


@pytest.mark.parametrize("policy", [Policy.FIFO, Policy.PRIORITY], ids=str)
def test_queues_that_both_wait_for_a_reservation_let_a_newcomer_in(policy):
    owners = Owner("", None), Owner("ann", policy=policy), Owner("bob", policy=policy), Owner("carol")
    jobs = tuple(
        Job(f"{name}{number}", name, 1, 1, NOW + number) for number in range(2) for name in ("ann", "bob")
    )
    jobs = tuple(replace(job, waiting_since=job.submitted) for job in jobs)
    pool = settled(Pool(Cluster((Host("h", tuple("01")),), owners), jobs, NOW + 1))
    for _ in range(24):
        pool = settled(waited(pool, 150.0))
    newcomer = Job("c", "carol", 1, 1, pool.now, waiting_since=pool.now)
    pool = replace(pool, jobs=(*pool.jobs, newcomer))
    for _ in range(3):
        pool = settled(waited(pool, 150.0))
    assert pool.job("c").size == 1


def test_no_other_is_suspended_for_a_job_that_rests():
    options = Options(turn=0.0, turn_growth=0.0, turn_costs=0.0)
    cluster = Cluster((Host("h", tuple("012345")),), options=options)
    jobs = Job("a", "", 1, 4, 0.0), Job("b", "", 2, 2, 0.0), Job("c", "", 3, 3, 0.0)
    pool = waited(settled(Pool(cluster, jobs)), 1000)
    newcomer = Job("d", "", 2, 2, pool.now, waiting_since=pool.now)
    pool = settled(replace(pool, jobs=(*pool.jobs, newcomer)))
    rest = newcomer.protected
    assert settled(waited(pool, rest - 1)).job("c").size == 0
    assert settled(waited(pool, rest + 1)).job("c").size == 3
