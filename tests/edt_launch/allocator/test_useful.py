"""Numbers of workers beyond which a job gets slower."""

from dataclasses import replace
from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edt_launch.allocator.decide import decide
from edt_launch.allocator.model import Cluster, Host, Job
from edt_launch.allocator.useful import UNCERTAINTY, useful
from pools import NOW, Pool, settled

SLOWER = ((1, 1.0), (2, 1.8), (4, 3.0), (8, 1.5))


@pytest.mark.parametrize(
    "points,limit",
    [
        ((), 16),
        (((4, 3.0),), 16),
        (((1, 1.0), (4, 3.0)), 16),
        (SLOWER, 4),
        (((1, 1.0), (4, 3.0), (16, 1.5)), 8),
        (((1, 1.0), (4, 3.0), (8, 3.0 * (1 + UNCERTAINTY / 2))), 4),
        (((1, 1.0), (4, 3.0), (8, 3.2)), 16),
        (((1, 1.0), (4, 3.0), (32, 0.1)), 16),
    ],
)
def test_the_smallest_number_that_no_larger_one_is_faster_than(points, limit):
    assert useful(points, 16) == limit


@pytest.mark.parametrize(
    "points,limit",
    [
        (((4, 4.0), (16, 2.0)), 12),
        (((4, 4.0), (12, 3.0), (16, 2.0)), 4),
        (((4, 4.0), (12, 5.0), (16, 2.0)), 12),
        (((12, 4.0), (16, 2.0)), 12),
    ],
)
def test_a_number_that_a_job_can_run_with_is_tried_though_it_is_no_half_of_a_slower_one(points, limit):
    assert useful(points, 16, allowed=(4, 12, 16)) == limit


@given(st.lists(st.floats(0.5, 2), min_size=1, max_size=64), st.integers(1, 64))
def test_untried_numbers_are_tried_until_the_next_slower_one_is_within_twice_the_best(curve, first):
    speeds = dict(enumerate(curve, 1))
    most = len(curve)
    known = {size: speeds[size] for size in (1, min(first, most))}
    tried = 0
    while (size := useful(sorted(known.items()), most)) not in known:
        known[size] = speeds[size]
        tried += 1
    assert tried <= 1 + log2(most) ** 2
    assert known[size] >= (1 - UNCERTAINTY) * max(known.values())


def test_what_does_not_help_a_job_goes_to_others():
    hosts = tuple(Host(f"h{number}", tuple("0123")) for number in range(4))
    jobs = (Job("j", "ann", 1, 16, 0.0, speedup=SLOWER), Job("k", "bob", 1, 16, 0.0))
    pool = settled(Pool(Cluster(hosts), jobs))
    assert [job.size for job in pool.jobs] == [4, 12]


def test_what_nobody_can_use_well_is_left_free():
    hosts = tuple(Host(f"h{number}", tuple("0123")) for number in range(4))
    pool = settled(Pool(Cluster(hosts), (Job("j", "", 1, 16, 0.0, speedup=SLOWER),)))
    assert pool.job("j").size == 4


def test_the_owner_may_insist():
    hosts = tuple(Host(f"h{number}", tuple("0123")) for number in range(4))
    pool = settled(Pool(Cluster(hosts), (Job("j", "", 6, 16, 0.0, speedup=SLOWER),)))
    assert pool.job("j").size == 6


def large(*speedup: tuple[int, float], cost: float = 5.0) -> Pool:
    """A job alone on 16 devices, of which that has become known."""
    hosts = tuple(Host(f"h{number}", tuple("0123")) for number in range(4))
    pool = settled(Pool(Cluster(hosts), (Job("j", "", 1, 16, 0.0, resize_cost=cost),)))
    assert pool.job("j").size == 16
    return replace(pool, jobs=(replace(pool.job("j"), speedup=speedup),))


def test_a_job_that_has_learned_that_fewer_are_faster_gives_the_rest_back():
    """Twice as fast for as long as it has had its size is to be worth what a resize costs."""
    for cost in 5.0, 600.0:
        pool = large((4, 4.0), (16, 2.0), cost=cost)
        assert replace(pool, now=pool.now + cost - 1).plan.targets == {"j": 16}
        assert replace(pool, now=pool.now + cost).plan.targets == {"j": 8}


def test_a_job_keeps_what_does_not_help_it_until_others_need_it():
    pool = replace(large((8, 8.0), (16, 8.1)), now=NOW + 1e6)
    pool = replace(pool, jobs=(replace(pool.job("j"), resize_cost=1e5),))
    plan, reasons = decide(pool.now, pool.cluster, pool.jobs)
    assert plan.targets == {"j": 16}
    assert reasons["j"].text.startswith(
        "has 16: 8 are as fast for this job, but to shrink now would cost more"
    )
    pool = settled(replace(pool, jobs=(*pool.jobs, Job("k", "", 2, 6, pool.now))))
    assert [job.size for job in pool.jobs] == [10, 6]


def test_a_job_whose_speeds_are_about_the_same_does_not_go_to_and_fro():
    pool = settled(large((8, 8.0), (16, 8.1)))
    for speed in (8.0, 8.3, 7.9, 8.1) * 20:
        learned = replace(pool.job("j"), speedup=((8, 8.0), (16, speed)))
        pool = settled(replace(pool, now=pool.now + 20, jobs=(learned,)))
        assert pool.job("j").size == 16


def test_a_size_that_was_not_measured_is_measured_before_it_is_given_up():
    assert replace(large((4, 4.0), (8, 2.0)), now=NOW + 1e6).plan.targets == {"j": 16}
