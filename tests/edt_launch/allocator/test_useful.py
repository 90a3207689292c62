"""Numbers of workers beyond which a job gets slower."""

from dataclasses import replace

import pytest

from edt_launch.allocator.decide import decide
from edt_launch.allocator.model import Cluster, Host, Job
from edt_launch.allocator.useful import UNCERTAINTY, useful
from pools import NOW, Pool, settled

SIXTEEN = tuple(Host(f"h{number}", tuple("0123")) for number in range(4))
SLOWER = ((1, 1.0), (2, 1.8), (4, 3.0), (8, 1.5))


@pytest.mark.parametrize(
    "points,allowed,limit",
    [
        ((), None, 16),
        (SLOWER, None, 4),
        (((1, 1.0), (4, 3.0), (8, 3.0 * (1 + UNCERTAINTY / 2))), None, 4),
        (((1, 1.0), (4, 3.0), (8, 3.2)), None, 16),
        (((1, 1.0), (4, 3.0), (32, 0.1)), None, 16),
        (((4, 4.0), (16, 2.0)), (4, 12, 16), 12),  # tried, though it is no half of a slower one
        (((4, 4.0), (12, 3.0), (16, 2.0)), (4, 12, 16), 4),
    ],
)
def test_the_smallest_number_that_no_larger_one_is_faster_than(points, allowed, limit):
    assert useful(points, 16, allowed) == limit


def dipping(least: int, others: tuple[Job, ...], *, allowed: tuple[int, ...] | None = None) -> Pool:
    """A job that was measured to be slower with 6 to 8 workers than with 4, and fastest with 16."""
    points = (4, 4.0), (6, 2.0), (8, 3.0), (16, 4.5)
    job = Job("j", "ann", least, 16, 0.0, allowed=allowed, speedup=points, step_time=4.0)
    return settled(Pool(Cluster((Host("h", tuple("0123456789ab")),)), (job, *others)))


def test_a_job_has_no_size_at_which_it_was_measured_to_be_slower():
    pool = dipping(1, (Job("k", "bob", 1, 16, 0.0),))
    reasons = decide(pool.now, pool.cluster, pool.jobs)[1]
    assert [job.size for job in pool.jobs] == [4, 8]
    assert "6 devices are slower than 4 for this job, measured 2 s against 1 s" in reasons["j"].text
    assert reasons["j"].change.startswith("It has 14 when its share reaches that.")
    assert dipping(1, ()).job("j").size == 4
    assert dipping(6, (Job("k", "bob", 1, 16, 0.0),)).job("j").size == 6
    assert dipping(1, (Job("k", "bob", 1, 16, 0.0),), allowed=(2, 8, 16)).job("j").size == 2


def large(*speedup: tuple[int, float], cost: float = 5.0) -> Pool:
    """A job alone on 16 devices, of which that has become known."""
    pool = settled(Pool(Cluster(SIXTEEN), (Job("j", "", 1, 16, 0.0, resize_cost=cost),)))
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
    assert "to shrink now would cost more" in reasons["j"].text
    pool = settled(replace(pool, jobs=(*pool.jobs, Job("k", "", 2, 6, pool.now))))
    assert [job.size for job in pool.jobs] == [10, 6]
