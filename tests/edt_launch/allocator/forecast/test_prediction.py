from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from edt_launch.allocator.decide import decide
from edt_launch.allocator.forecast.prediction import Start, starts
from edt_launch.allocator.model import Cluster, Host, HostDevices, Job, Owner
from examples import fewer

NOW = 1000.0


def cluster(devices: int) -> Cluster:
    return Cluster((Host("a", tuple(map(str, range(devices)))),), (Owner("", None), Owner("ann")))


def running(id_: str, *devices: int, most: int | None = None) -> Job:
    held = (HostDevices("a", tuple(map(str, devices))),)
    least = len(devices)
    return Job(id_, "ann", least, most or least, 0.0, held=held, started=NOW - 10)


def waiting(id_: str, least: int = 1) -> Job:
    return Job(id_, "ann", least, least, NOW - 5, waiting_since=NOW - 5)


def test_a_job_starts_when_any_of_those_that_have_enough_ends() -> None:
    jobs = [running("b", 0, 1), running("c", 2, 3), running("d", 4), waiting("w", 2)]
    rests = {"b": 70.0, "c": 50.0, "d": 5.0}
    assert starts(NOW, cluster(5), jobs, rests) == [Start("w", NOW + 50, 2, ("c", "b"), True)]


def test_a_job_that_grows_ends_earlier() -> None:
    jobs = [running("b", 0), running("c", 1, most=2), waiting("w", 2)]
    # When b has ended, c has two devices, and the 20 s that it had left are over in 10 s.
    assert starts(NOW, cluster(2), jobs, {"b": 10.0, "c": 30.0}) == [
        Start("w", NOW + 20, 2, ("b", "c"), False)
    ]


@fewer(1 / 2)
@given(
    st.lists(st.tuples(st.integers(1, 3), st.floats(0, 100)), min_size=1, max_size=4),
    st.lists(st.integers(1, 4), max_size=3),
)
def test_starts_are_in_order_and_of_jobs_that_wait(held: list[tuple[int, float]], least: list[int]) -> None:
    ends = list(accumulate(size for size, _ in held))
    jobs = [running(f"r{end}", *range(end - size, end)) for end, (size, _) in zip(ends, held, strict=True)]
    rests = {job.id: rest for job, (_, rest) in zip(jobs, held, strict=True)}
    jobs += [waiting(f"w{number}", size) for number, size in enumerate(least)]
    pool = cluster(ends[-1])
    found = starts(NOW, pool, jobs, rests)
    assert [one.at for one in found] == sorted(one.at for one in found)
    assert len({one.job for one in found}) == len(found)
    assert {one.job for one in found} <= {job.id for job in jobs if not job.size}
    if len(least) == 1 and least[0] <= ends[-1]:  # everybody else ends
        assert found
    plan, _ = decide(NOW, pool, jobs)
    assert {one.job for one in found if not one.after} >= {
        job.id for job in jobs if not job.size and plan.assignments[job.id]
    }
