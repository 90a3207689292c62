from itertools import pairwise, product
from math import inf, log

from hypothesis import given
from hypothesis import strategies as st

from edt_launch.allocator.model import Job
from edt_launch.allocator.speedup import best_division, gain, hull, speed
from edt_launch.allocator.work import next_usable


def test_nothing_is_no_measurement_and_every_gain_on_it_is_infinite():
    assert gain(Job("j", "", 1, 9, 0.0), 0, 1) == inf
    assert hull([(0, 1.0), (2, 0.0)]) == hull([])


POINTS = st.lists(
    st.tuples(st.integers(1, 8), st.floats(0.1, 8)), max_size=4, unique_by=lambda point: point[0]
)


@given(POINTS)
def test_curves_are_concave_and_above_what_was_measured(points):
    curve = hull(points)
    speeds = [speed(curve, count) for count in range(12)]
    gains = [after - before for before, after in pairwise(speeds)]
    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(gains))
    assert all(speed(curve, count) >= value - 1e-9 for count, value in points)


@given(
    st.lists(st.tuples(st.floats(0.2, 1), st.sampled_from([0.5, 1.0, 2.0])), min_size=1, max_size=3),
    st.integers(0, 9),
)
def test_no_other_division_is_better(shapes, total):
    jobs = [
        Job(f"j{place}", "", 1, 5, 0.0, weight=weight, speedup=tuple((n, n**power) for n in range(1, 6)))
        for place, (power, weight) in enumerate(shapes)
    ]
    lows, highs = [1] * len(jobs), [5] * len(jobs)
    total = max(total, len(jobs))

    def worth(sizes):
        return sum(
            job.weight * log(speed(hull(job.speedup), size)) for job, size in zip(jobs, sizes, strict=True)
        )

    sizes = best_division(total, jobs, lows, highs, lambda place, size: next_usable(jobs[place], size))
    assert sum(sizes) == min(total, sum(highs))
    others = [other for other in product(range(1, 6), repeat=len(jobs)) if sum(other) == sum(sizes)]
    assert worth(sizes) >= max(map(worth, others)) - 1e-9
