import itertools

import pytest

from edt_launch.tools.verify.schedules import resizing


def grows(schedule):
    return any(before < after for before, after in itertools.pairwise(schedule.sizes))


@pytest.mark.parametrize("steps", [3, 4, 5, 6, 29])
def test_every_resize_takes_effect_before_the_last_step(steps):
    for schedule in resizing(0, 4, (1, 2, 3), steps):
        assert len(schedule.holds) == len(schedule.sizes) - 1
        assert schedule.holds[0] >= 1
        assert schedule.holds[-1] <= steps - 2
        assert all(later - earlier >= 2 for earlier, later in itertools.pairwise(schedule.holds))


@pytest.mark.parametrize("seed", range(5))
def test_schedules_differ_and_each_of_them_grows(seed):
    schedules = resizing(seed, 3, (1, 2, 3), 6)
    assert len(set(schedules)) == 3
    assert all(map(grows, schedules))
    assert all(a != b for schedule in schedules for a, b in itertools.pairwise(schedule.sizes))
    assert schedules == resizing(seed, 3, (1, 2, 3), 6)
