import pytest

from edt_launch.tools.simulate.runtime import Interpolated, Linear, Measured, best, packed

MEASURED = Measured({1: {1: 100.0}, 2: {1: 60.0, 2: 80.0}, 3: {1: 70.0}})


def test_a_linear_job_is_n_times_as_fast_on_n_workers():
    assert Linear(120.0, 8).seconds(4, 2) == 30.0


def test_measured_times_depend_on_the_number_of_hosts():
    assert MEASURED.seconds(2, 1) == 60.0
    assert MEASURED.seconds(2, 2) == 80.0
    assert MEASURED.largest == 3


def test_speed_is_interpolated_between_the_points():
    times = Interpolated(((1, 100.0), (2, 50.0), (8, 20.0)))
    assert times.seconds(8, 1) == 20.0
    assert times.seconds(1, 1) == 100.0
    assert 1 / times.seconds(5, 1) == pytest.approx((1 / 50 + 1 / 20) / 2)


def test_packed_takes_as_few_hosts_as_possible():
    assert packed(MEASURED, 2, per_host=2) == 60.0
    assert packed(MEASURED, 2, per_host=1) == 80.0


def test_the_best_number_need_not_be_the_largest():
    assert best(MEASURED, 3, per_host=4) == 60.0
    assert best(MEASURED, 1, per_host=4) == 100.0
