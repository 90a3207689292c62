"""The status of a job, folded from its events."""

import math
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edt_launch.core.events import (
    Checkpointed,
    Finished,
    Progress,
    Ready,
    Restarting,
    Restored,
    Resumed,
    Standby,
    Started,
    Usable,
    WarmServer,
    World,
)
from edt_launch.launcher.view.status import HISTORY, WINDOW, Mark, Resize, Status, rate, remaining


def world(generation, size, reason=""):
    return World(generation, size, reason=reason)


def progress(step, size=2, **values):
    return Progress(step, 0, size, values, time=step)


def resumed(generation, pause):
    return Resumed(generation, 2, 4, pause)


def fold(*events):
    return reduce(Status.observe, events, Status())


def test_a_jobs_course():
    status = fold(
        Started(0, "h", 0, None, 0),
        Started(1, "h", 1, None, 1),
        Ready(0, 9),
        world(1, 2),
        progress(5, loss=0.5, total_steps=100),
        progress(6, loss=0.4),
    )
    assert (status.size, status.generation, status.step, status.total, status.epoch) == (2, 1, 6, 100, 0)
    assert status.values == {"loss": 0.4, "total_steps": 100}
    assert status.history == (Mark(5, 5, 2, 1), Mark(6, 6, 2, 1))
    assert status.starting == {1}
    assert status.resizes == ()
    done = status.observe(Finished(0, "done"))
    assert (done.exit_code, done.reason) == (0, "done")


def test_resizes_have_the_step_and_their_own_pause():
    status = fold(world(1, 2), progress(5), world(2, 4, "grown"), world(3, 1, "shrunk"), resumed(3, 0.25))
    assert status.resizes == (Resize(2, 5, 2, 4, None, "grown"), Resize(3, 5, 4, 1, 0.25, "shrunk"))


def test_a_lost_worker_shows_in_the_size_before():
    assert fold(world(1, 3), world(2, 2, "lost")).resizes == (Resize(2, None, 3, 2, None, "lost"),)


def test_what_is_unknown_or_odd_changes_nothing():
    status = fold(world(1, 2), progress(5))
    for event in (
        Usable(3),
        resumed(1, 1.0),
        resumed(9, 1.0),
    ):
        assert status.observe(event) == status
    assert fold(progress(1, total_steps="many")).total is None
    for odd in (0, -1, math.inf, math.nan, True, 2**60):
        assert fold(progress(1, total_steps=odd)).total is None


def test_the_history_is_bounded():
    status = fold(*(progress(step) for step in range(HISTORY + 10)))
    assert len(status.history) == HISTORY
    assert status.step == HISTORY + 9


def standby(waited):
    return Standby(waited, 0.5, 7, worker=1)


def test_the_cost_of_newcomers_counts_from_the_first_resize_on():
    status = fold(world(1, 2), standby(1.0), world(2, 4, "grown"), standby(2.0))
    assert status.standbys == (standby(2.0),)


def test_the_latest_warm_server_of_a_host_that_forks():
    first, second = (WarmServer("a", 7, seconds, ()) for seconds in (1.0, 2.0))
    status = fold(first, second, WarmServer("b", 7, 3.0, (), refused="threads"))
    assert status.warm_servers == {"a": second}


def test_a_restart_begins_with_a_first_world():
    status = fold(world(1, 2), progress(5), world(2, 4, "grown"), resumed(2, 0.5), progress(9, 4))
    status = status.observe(Finished(1, "lost"))
    again = status.observe(Restarting("lost", 0.0, 1, 3, True))
    assert (again.size, again.generation, again.exit_code, again.step) == (None, 0, None, 9)
    assert again.resizes == status.resizes
    again = reduce(Status.observe, (world(1, 3), world(2, 2, "shrunk"), resumed(2, 0.1)), again)
    assert again.resizes == (Resize(2, 5, 2, 4, 0.5, "grown"), Resize(2, 9, 3, 2, 0.1, "shrunk"))


def test_the_last_checkpoint():
    status = fold(world(1, 2), Restored("x", 7))
    assert status.checkpoint == 7
    assert status.observe(Checkpointed(9, "x", 1, 0.5)).checkpoint == 9


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
