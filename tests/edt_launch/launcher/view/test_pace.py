"""Pace and remaining time, through resizes, pauses and steps that are done again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edt_launch.launcher.view.status import WINDOW, Mark, rate, remaining


def run(start, step, steps, size, pace, generation=1, gap=1.0):
    """Reports of training at a constant pace."""
    return [
        Mark(start + gap * i, step + round(gap * pace * i), size, generation)
        for i in range(int(steps / pace / gap) + 1)
    ]


def test_unknown_before_there_is_anything_to_go_by():
    assert rate([]) is None
    assert rate([Mark(0, 1, 2)]) is None
    assert remaining(0, [], 100) is None
    assert remaining(0, [Mark(0, 1, 2)], 100) is None
    assert remaining(10, run(0, 0, 10, 2, 1), None) is None


def test_a_constant_pace():
    history = run(0, 0, 20, 2, 2)
    assert rate(history) == 2
    assert remaining(10, history, 120) == 50


def test_foretold_in_proportion_right_after_a_resize():
    history = [*run(0, 0, 20, 2, 2), Mark(14, 21, 4, 2)]
    assert rate(history) == 4
    assert remaining(14, history, 121) == 25


def test_measured_as_soon_as_there_are_a_few_steps():
    history = [*run(0, 0, 20, 2, 2), *run(14, 21, 9, 4, 3, generation=2)]
    assert rate(history) == 3


def test_a_known_size_is_remembered_though_others_came_between():
    history = [*run(0, 0, 20, 2, 2), *run(14, 21, 9, 4, 3, generation=2), Mark(20, 31, 2, 3)]
    assert rate(history) == 2


def test_pauses_do_not_count():
    history = [*run(0, 0, 20, 2, 2), *run(100, 20, 20, 2, 2, generation=2)]
    assert rate(history) == 2


def test_steps_that_are_done_again_do_not_count():
    history = [*run(0, 0, 20, 2, 2), *run(11, 10, 20, 2, 2)]
    assert rate(history) == 2


def test_only_the_latest_counts():
    history = [*run(0, 0, 500, 2, 5), *run(101, 502, 2 * int(WINDOW), 2, 2)]
    assert rate(history) == pytest.approx(2, rel=0.1)


def test_counts_down_between_reports_and_stands_still_in_a_pause():
    history = run(0, 0, 20, 2, 2)
    assert [remaining(now, history, 60) for now in (10, 10.5, 11, 12, 1000)] == [20, 19.5, 19, 19, 19]


def test_a_clock_that_was_set_back_does_no_harm():
    history = [*run(100, 0, 20, 2, 2), *run(50, 21, 20, 2, 2)]
    assert rate(history) == 2
    assert remaining(0, history, 61) == 10


marks = st.builds(Mark, st.floats(0, 1e6), st.integers(0, 10**6), st.integers(1, 8), st.integers(0, 3))


@given(st.floats(0, 1e6), st.lists(marks, max_size=20), st.integers(1, 10**6))
def test_is_never_negative(now, history, total):
    assert (rate(history) or 0) >= 0
    assert (remaining(now, history, total) or 0) >= 0
