"""The status of a job, folded from its events."""

from functools import reduce

from edt_launch.core.events import (
    Finished,
    Progress,
    Ready,
    Restarting,
    Resumed,
    Started,
    World,
)
from edt_launch.launcher.view.status import Mark, Resize, Status, rate, remaining


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


def test_a_restart_begins_with_a_first_world():
    status = fold(world(1, 2), progress(5), world(2, 4, "grown"), resumed(2, 0.5), progress(9, 4))
    status = status.observe(Finished(1, "lost"))
    again = status.observe(Restarting("lost", 0.0, 1, 3, True))
    assert (again.size, again.generation, again.exit_code, again.step) == (None, 0, None, 9)
    assert again.resizes == status.resizes
    again = reduce(Status.observe, (world(1, 3), world(2, 2, "shrunk"), resumed(2, 0.1)), again)
    assert again.resizes == (Resize(2, 5, 2, 4, 0.5, "grown"), Resize(2, 9, 3, 2, 0.1, "shrunk"))


def run(start, step, steps, size, pace, generation=1, gap=1.0):
    """Reports of training at a constant pace."""
    return [
        Mark(start + gap * i, step + round(gap * pace * i), size, generation)
        for i in range(int(steps / pace / gap) + 1)
    ]


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
