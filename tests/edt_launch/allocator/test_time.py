"""Properties of decisions that follow one another."""

from dataclasses import replace
from math import ceil
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from edt_launch.allocator.decide import decide
from edt_launch.allocator.model import Cluster, Host, HostDevices, Job
from examples import fewer
from pools import Pool, applied, pools, settled, waited

TICK = 120.0


@given(st.integers(0, 2**32), st.integers(2, 5), st.integers(2, 6))
def test_every_job_gets_its_turn(seed, count, size):
    random = Random(seed)
    jobs = []
    for number in range(count):
        least, since = random.randint(1, size), float(number)
        jobs.append(Job(f"j{number}", "", least, random.randint(least, size), since, waiting_since=since))
    pool = Pool(Cluster((Host("h", tuple("012345"[:size])),)), tuple(jobs), 10.0)
    quantum = pool.cluster.options.longest_wait
    bound = quantum * ceil(sum(job.min for job in jobs) / size) + 2 * TICK
    waiting = {job.id for job in jobs}
    while waiting:
        pool = settled(pool)
        waiting -= {job.id for job in pool.jobs if job.held}
        assert pool.now - 10.0 <= bound
        pool = waited(pool, TICK)


@fewer(1 / 2)
@given(pools("history", never=["drain"]))
def test_no_job_goes_back_and_forth_without_an_event(pool):
    pool = settled(pool)
    changed = {job.id: [job.size] for job in pool.jobs}
    for _ in range(8):
        pool = settled(waited(pool, 15.0))
        for job in pool.jobs:
            if job.held and job.size != changed[job.id][-1]:
                changed[job.id].append(job.size)
    for sizes in changed.values():
        running = [size for size in sizes if size]
        assert len(set(running)) == len(running)


def test_a_newcomer_waits_for_its_devices_and_nobody_gets_them_meanwhile():
    cluster = Cluster((Host("h", ("0", "1", "2", "3")),))
    pool = settled(Pool(cluster, (Job("a", "", 1, 4, 0.0),)))
    pool = replace(pool, jobs=(*pool.jobs, Job("b", "", 2, 2, 1.0)), now=pool.now + 60)
    plan, reasons = decide(pool.now, pool.cluster, pool.jobs)
    assert plan.targets == {"a": 2, "b": 2}
    assert plan.assignments == {"a": (HostDevices("h", ("0", "1")),), "b": ()}
    assert "as soon as devices have been handed over" in reasons["b"].text
    half = applied(pool, plan, is_released=False)
    one_left = replace(half.jobs[0], leaving=(HostDevices("h", ("3",)),))
    assert replace(half, jobs=(one_left, half.jobs[1])).plan.assignments["b"] == ()
    assert applied(pool, plan).plan.assignments["b"] == (HostDevices("h", ("2", "3")),)
