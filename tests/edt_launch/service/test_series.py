from itertools import pairwise
from math import nan

from edt_launch.core.events import Progress
from edt_launch.service.series import MOST, Series, number


def progress(time: float, step: int, size: int = 1, **values: float) -> Progress:
    return Progress(step, None, size, values, time=time)


def test_progress_becomes_columns() -> None:
    series = Series()
    for event in (
        progress(1.0, 10, loss=0.5),
        progress(3.0, 30),
        progress(4.0, 40, 2, loss=nan),
        progress(5.0, 70, 2, loss=0.25),
    ):
        series.observe(event)
    assert series.columns() == {
        "time": [1.0, 3.0, 4.0, 5.0],
        "step": [10, 30, 40, 70],
        "size": [1, 1, 2, 2],
        "loss": [0.5, None, None, 0.25],
        "throughput": [None, 10.0, None, 30.0],
    }


def test_nothing_is_empty_columns() -> None:
    assert set(map(tuple, Series().columns().values())) == {()}


def test_a_long_course_is_thinned_out_evenly() -> None:
    series = Series()
    for step in range(10 * MOST):
        series.observe(progress(float(step), step))
    steps = series.columns()["step"]
    assert MOST <= len(steps) <= 2 * MOST
    assert len({after - before for before, after in pairwise(steps)}) == 1


def test_an_integer_beyond_all_floats_is_no_number() -> None:
    assert number(10**400) is None
    assert number(10**300) == 1e300
