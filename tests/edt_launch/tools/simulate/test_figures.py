import pytest

from edt_launch.tools.simulate.figures import contention_rho, due, judge, quantile, rho
from edt_launch.tools.simulate.replay import Outcome, Run, Timing, machines
from small import job

HOSTS = machines(8, 4)


def outcome(*runs):
    return Outcome("some", HOSTS, Timing(), runs, 7)


def run(name, submitted, *sizes, resizes=0, **fields):
    (ended, _) = sizes[-1]
    return Run(job(name, submitted, **fields), ended, resizes, 0, sizes)


def test_the_percentile_is_the_nearest_rank():
    values = [float(n) for n in range(1, 161)]
    assert (quantile(values, 0.99), quantile(values, 0.5), quantile([3.0], 0.99)) == (159, 80, 3)


def test_a_job_alone_on_the_whole_cluster_is_treated_fairly():
    (value,) = rho(outcome(run("a", 0, (0, 8), (12.5, 0))))
    assert value == pytest.approx(1.0)


def test_two_jobs_are_each_due_half_of_the_cluster():
    values = rho(outcome(run("a", 0, (0, 8), (50, 0)), run("b", 0, (0, 1), (50, 0))))
    assert values == pytest.approx([50 / (100 / 4)] * 2)


def test_the_part_follows_from_the_mean_number_of_jobs():
    values = rho(outcome(run("a", 0, (0, 8), (60, 0)), run("b", 0, (0, 1), (20, 0))))
    assert values[0] == pytest.approx(60 / (100 / 6))  # 4 / 3 jobs: floor(8 / (4 / 3)) GPUs


def test_with_more_jobs_than_gpus_a_part_is_one_gpu_for_a_part_of_the_time():
    values = rho(outcome(*(run(f"j{i}", 0, (0, 1), (300, 0)) for i in range(16))))
    assert values == pytest.approx([300 / (100 * 2)] * 16)


def test_the_best_number_of_gpus_up_to_the_maximum_counts():
    (value,) = rho(outcome(run("a", 0, (0, 2), (50, 0), max=2)))
    assert value == pytest.approx(1.0)


def test_with_a_fixed_contention_the_whole_trace_counts():
    values = contention_rho(outcome(*(run(f"j{i}", 0, (0, 1), (300, 0)) for i in range(16))))
    assert values == pytest.approx([1.5] * 16)


def test_the_figures_of_a_small_replay():
    figures = judge(
        outcome(run("a", 0, (0, 2), (10, 4), (40, 0), resizes=1), run("b", 10, (20, 4), (30, 0), user="bob")),
    )
    assert (figures.jobs, figures.decisions) == (2, 7)
    assert (figures.mean_jct, figures.median_jct, figures.p99_jct, figures.makespan) == (30, 20, 40, 40)
    assert figures.resizes_per_job == 0.5
    # Due: 8 to a; from 10 to 30 s 4 to each; then 8 to a. Missed: 6 x 10 + 4 x 10 + 0 + 4 x 10 of 8 x 40.
    assert figures.share_error == pytest.approx((60 + 40 + 40) / 320)
    # Could be used: all 8 throughout. Unused: 6 x 10 + 4 x 10 + 0 + 4 x 10.
    assert figures.idle == pytest.approx(140 / 320)


def test_users_share_alike_and_their_jobs_share_what_is_theirs():
    live = [job("a1"), job("a2"), job("b1", user="bob")]
    assert due(8, live) == {"a1": 2, "a2": 2, "b1": 4}


def test_what_a_user_cannot_use_goes_to_others():
    live = [job("a1"), job("b1", user="bob", max=1)]
    assert due(8, live) == {"a1": 7, "b1": 1}


def test_without_users_all_jobs_share_alike():
    live = [job("a1"), job("a2"), job("b1", user="bob", max=8)]
    assert due(6, live, by_user=False) == {"a1": 2, "a2": 2, "b1": 2}
