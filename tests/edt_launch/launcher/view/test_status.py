"""The status of a job, folded from its events."""

from functools import reduce

from edt_launch.core.events import (
    Finished,
    Progress,
    Ready,
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


def run(start, step, steps, size, pace, generation=1, gap=1.0):
    """Reports of training at a constant pace."""
    return [
        Mark(start + gap * i, step + round(gap * pace * i), size, generation)
        for i in range(int(steps / pace / gap) + 1)
    ]


def test_foretold_in_proportion_right_after_a_resize():
    history = [*run(0, 0, 20, 2, 2), Mark(14, 21, 4, 2)]
    assert rate(history) == 4
    assert remaining(14, history, 121) == 25
