"""How fast a job is."""

from edt_launch.core.history.job_history import Mark
from edt_launch.launcher.view.pace import rate, remaining


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
