import pytest

from edt_launch.tools.simulate.figures import judge
from edt_launch.tools.simulate.replay import SimulatedJob, SimulatedRun, Timing, machines
from small import job

HOSTS = machines(8, 4)


def outcome(*runs):
    return SimulatedJob("some", HOSTS, Timing(), runs, 7)


def run(name, submitted, *sizes, resizes=0, **fields):
    (ended, _) = sizes[-1]
    return SimulatedRun(job(name, submitted, **fields), ended, resizes, 0, sizes)


def test_the_figures_of_a_small_replay():
    figures = judge(
        outcome(run("a", 0, (0, 2), (10, 4), (40, 0), resizes=1), run("b", 10, (20, 4), (30, 0), user="bob"))
    )
    assert (figures.jobs, figures.decisions) == (2, 7)
    assert (figures.mean_jct, figures.median_jct, figures.p99_jct, figures.makespan) == (30, 20, 40, 40)
    assert figures.resizes_per_job == 0.5
    # Due: 8 to a; from 10 to 30 s 4 to each; then 8 to a. Missed: 6 x 10 + 4 x 10 + 0 + 4 x 10 of 8 x 40.
    assert figures.share_error == pytest.approx((60 + 40 + 40) / 320)
    # Could be used: all 8 throughout. Unused: 6 x 10 + 4 x 10 + 0 + 4 x 10.
    assert figures.idle == pytest.approx(140 / 320)
