"""Which jobs run, when not all of their minimums fit."""

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
