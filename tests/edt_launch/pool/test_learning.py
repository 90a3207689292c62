"""What a job's past says of its future."""

from edt_launch.pool.course import Course, Life, Pace
from edt_launch.pool.learning import PRIOR_COST, resize_cost, speedup, throughput


def test_the_cost_of_a_resize_starts_with_the_prior() -> None:
    assert resize_cost(Course()) == PRIOR_COST
    assert resize_cost(Course(pauses=(1.0, 1.0, 1.0))) == (PRIOR_COST + 3) / 4


def test_speed_is_relative_to_one_worker() -> None:
    paces = (Pace(2, 20, 10), Pace(3, 5, 0.1), Pace(4, 30, 10))
    assert speedup(Course(paces=paces)) == ((2, 2.0), (4, 3.0))
    assert speedup(Course(paces=paces[:2])) == ()


def test_throughput_is_that_at_the_present_size() -> None:
    paces = (Pace(2, 20, 10), Pace(4, 30, 10))
    assert throughput(Course(Life(size=4), paces=paces)) == 3.0
    assert throughput(Course(Life(size=3), paces=paces)) is None
    assert throughput(Course(paces=paces)) is None
