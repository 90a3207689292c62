"""Two users share four slots: real jobs, from the first submission to the last exit."""

import os
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from attacked import journals

from edt_launch.service.bus import Topic
from edt_launch.service.cluster.records import ShareRecord
from edt_launch.service.jobs.states import State, Wanted
from pool_harness import Pool

ENDLESS = ("--steps", 100_000, "--delay", 0.5)


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    one = Pool(tmp_path / "a pool's folder")
    one.start()
    yield one
    print(one.report())
    one.close()


def test_two_users_and_four_slots(pool: Pool) -> None:
    first = pool.submit("ann", 1, 4, *ENDLESS)
    pool.until_sizes(4)
    pool.store.shares.put(ShareRecord("ann", weight=3.0))
    second = pool.submit("bob", 1, 4, *ENDLESS)
    pool.until_sizes(3, 1)
    pool.until_training(first, second)

    large = pool.submit_command("bob", 3, 3, ("true",), warm_start=False)
    pool.until(lambda: pool.job(large).why is not None)
    assert pool.job(large).state is State.QUEUED
    pool.finish(second)
    pool.until(lambda: pool.job(large).state is State.SUCCEEDED)
    pool.finish(first)

    assert pool.overlaps() == []
    assert {use.device for use in journals.uses(pool.out)} == {"0", "1", "2", "3"}
    for job in (first, second):
        done = pool.steps(job)
        assert done == list(range(1, len(done) + 1))
        assert pool.job(job).step == len(done)
    resized = [c.after for c in pool.store.history.newest(job=first) if c.after != c.before]
    assert resized[:3] == [4, 3, 1]


@pytest.mark.full
def test_a_job_whose_launcher_is_killed_goes_on_until_it_is_stopped(pool: Pool) -> None:
    job = pool.submit("ann", 1, 2, *ENDLESS, checkpoint_interval=0.5)
    pool.until_training(job)
    pool.until(lambda: [event for event in pool.events(job) if event["event"] == "checkpointed"])
    pid = pool.job(job).launcher_pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    pool.until(lambda: pool.job(job).launcher_pid not in (None, pid))
    assert pool.job(job).restarts == 1
    pool.until_training(job)
    pool.until(lambda: [event for event in pool.events(job) if event["event"] == "restored"])
    pool.wish(job, Wanted.STOP)
    pool.until(lambda: pool.job(job).state is State.STOPPED)
    assert pool.overlaps() == []


def test_a_program_that_cannot_save_keeps_its_slots_in_a_pool_to_its_own_exit_code(pool: Pool) -> None:
    go = pool.out / "go"
    wait = f"while [ ! -e {shlex.quote(str(go))} ]; do sleep 0.1; done; exit 143"
    first = pool.submit_command("ann", 4, 4, ("sh", "-c", wait), warm_start=False)
    pool.until(lambda: pool.job(first).state is State.RUNNING)
    second = pool.submit_command("bob", 1, 1, ("true",), warm_start=False, priority=1)
    pool.until(lambda: first in pool.job(second).reason)
    assert pool.sizes() == {first: 4}
    go.touch()
    pool.until(lambda: pool.job(second).state is State.SUCCEEDED)
    ended = pool.job(first)
    assert (ended.state, ended.exit_code, ended.restarts) == (State.FAILED, 143, 0)


def test_an_array_with_a_time_limit_and_a_job_that_waits_for_one_of_it(pool: Pool) -> None:
    tidy = f'trap "exit 0" TERM; touch {shlex.quote(str(pool.out))}/$EDT_ARRAY_INDEX; sleep 600 & wait'
    array = {"array_id": "a" * 8, "array_limit": 1, "warm_start": False}
    jobs = [
        pool.submit_command("ann", 1, 1, ("sh", "-c", tidy), array_index=index, **array) for index in (7, 8)
    ]
    last = pool.submit_command("bob", 1, 1, ("true",), after=(jobs[1],))
    for job, index in zip(jobs, "78", strict=True):
        pool.until((pool.out / index).exists)
        pool.store.jobs.change(job, time_limit=1.0)
        pool.bus.notify(Topic.DESIRED_STATE)
    pool.until(lambda: pool.job(last).has_ended)
    rows = [pool.job(job) for job in (*jobs, last)]
    assert [row.state for row in rows] == [State.STOPPED] * 3
    assert [row.reason for row in rows[:2]] == ["it has run for its time limit of 0:00:01"] * 2
    assert rows[2].reason == f"{jobs[1]} has stopped: this job was to run after its success"
    assert rows[0].ended <= rows[1].started
