"""Properties of decisions that follow one another."""

from dataclasses import replace
from math import ceil
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from edt_launch.allocator.decide import decide
from edt_launch.allocator.model import Cluster, Host, HostDevices, Job, Owner
from examples import fewer
from pools import FEATURES, Pool, applied, build, pools, settled, waited

TICK = 60.0


@given(st.integers(0, 2**32), st.integers(2, 5), st.integers(2, 6))
def test_every_job_gets_its_turn(seed, count, size):
    random = Random(seed)
    devices = tuple(str(device) for device in range(size))
    jobs = []
    for number in range(count):
        least = random.randint(1, size)
        jobs.append(
            Job(
                f"j{number}",
                "",
                least,
                random.randint(least, size),
                float(number),
                waiting_since=float(number),
            )
        )
    pool = Pool(Cluster((Host("h", devices),)), tuple(jobs), 10.0)
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
    before = {job.id: job.size for job in pool.jobs}
    changed: dict[str, list[int]] = {name: [size] for name, size in before.items()}
    for _ in range(8):
        pool = settled(waited(pool, 15.0))
        for job in pool.jobs:
            if job.held and job.size != changed[job.id][-1]:
                changed[job.id].append(job.size)
    for sizes in changed.values():
        running = [size for size in sizes if size]
        assert len(set(running)) == len(running)


def test_one_gpu_more_hardly_ever_shrinks_anyone():
    """Among pools in which every job runs: where one waits, a GPU more may let it in."""
    shrunk = count = 0
    for seed in range(1200):
        random = Random(seed)
        features = {"weights", "guarantees"} if seed % 2 else {"weights", "limits"}
        pool = settled(
            build(seed, random.randint(1, 10), random.randint(0, 6), random.randint(1, 4), features)
        )
        pool = settled(replace(settled(pool), now=pool.now + 1000))
        if not all(job.held for job in pool.jobs):
            continue
        hosts = (*pool.cluster.hosts, Host("new", ("0",)))
        more = settled(replace(pool, cluster=replace(pool.cluster, hosts=hosts)))
        count += 1
        shrunk += any(new.size < old.size for new, old in zip(more.jobs, pool.jobs, strict=True))
    assert count > 300
    assert shrunk <= 0.02 * count


def test_two_people_share_and_the_last_gets_all():
    cluster = Cluster((Host("h", ("0", "1", "2", "3")),), (Owner("", None), Owner("ann"), Owner("bob")))
    pool = settled(Pool(cluster, (Job("a", "ann", 1, 4, 0.0),)))
    assert pool.job("a").size == 4
    pool = settled(replace(pool, jobs=(*pool.jobs, Job("b", "bob", 1, 4, 1.0)), now=pool.now + 60))
    assert [job.size for job in pool.jobs] == [2, 2]
    pool = settled(replace(pool, jobs=pool.jobs[1:], now=pool.now + 60))
    assert pool.job("b").held == (HostDevices("h", ("2", "3", "0", "1")),)


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


def test_features_are_known():
    assert sorted(FEATURES) == list(FEATURES)
