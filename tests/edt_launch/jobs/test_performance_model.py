"""What a job's past says of its future."""

from edt_launch.allocator.model import Binding, Reason
from edt_launch.jobs.performance_model import PRIOR_COST, explained, resize_cost, speedup, throughput
from edt_launch.jobs.progress import JobProgress, LauncherRun, Pace


def test_the_cost_of_a_resize_starts_with_the_prior() -> None:
    assert resize_cost(JobProgress()) == PRIOR_COST
    assert resize_cost(JobProgress(pauses=(1.0, 1.0, 1.0))) == (PRIOR_COST + 3) / 4


def test_speed_is_relative_to_one_worker() -> None:
    paces = (Pace(2, 20, 10), Pace(3, 5, 0.1), Pace(4, 30, 10))
    assert speedup(JobProgress(paces=paces)) == ((2, 2.0), (4, 3.0))
    assert speedup(JobProgress(paces=paces[:2])) == ()


def test_throughput_is_that_at_the_present_size() -> None:
    paces = (Pace(2, 20, 10), Pace(4, 30, 10))
    assert throughput(JobProgress(LauncherRun(size=4), paces=paces)) == 3.0
    assert throughput(JobProgress(LauncherRun(size=3), paces=paces)) is None
    assert throughput(JobProgress(paces=paces)) is None


def test_why_a_job_has_no_more_than_its_program_can_use() -> None:
    at_most = Reason(Binding.MAX, 4.0, 2, (), "has 2, the most that it can use", "A higher --max ...")
    run = LauncherRun(min_np=1, max_np=4, usable=2)
    told = explained(run, 4, at_most)
    assert told is not None
    assert told.text == "has 2: its program has said that it can use 2 at most"
    assert "Its script decides" in told.change
    for other in (
        None,
        LauncherRun(max_np=4),
        LauncherRun(max_np=2, usable=2),
        LauncherRun(max_np=4, usable=9),
    ):
        assert explained(other, 4, at_most) == at_most
    assert explained(run, 2, at_most) == at_most
    by_share = Reason(Binding.SHARE, 2.0, 2, (), "has 2: its fair share is 2.00", "It grows ...")
    assert explained(run, 4, by_share) == by_share
    assert explained(run, 4, None) is None
