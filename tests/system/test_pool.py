"""Two users share four slots: real jobs, from the first submission to the last exit."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from attacked import journals

from edt_launch.service.bus import Topic
from edt_launch.service.database.records import ShareRecord
from edt_launch.service.states import State, Wanted
from pool_harness import Pool

SOON = 5.0
"""Seconds within which the sizes follow an event, when the jobs concerned train."""

IDLE = 10.0
"""Seconds for which a slot may stand idle while somebody wants it: a worker's end, the next one's start."""


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    one = Pool(tmp_path / "a pool's folder")
    one.start()
    yield one
    print(one.report())
    one.close()


def share(pool: Pool, owner: str, weight: float) -> None:
    pool.store.shares.put(ShareRecord(owner, weight=weight))
    pool.bus.notify(Topic.DESIRED_STATE)


def finish(pool: Pool, job: str) -> None:
    (pool.out / f"finish.{job}").touch()
    pool.until(lambda: pool.job(job).state is State.SUCCEEDED)


@pytest.mark.timeout(900)
def test_two_users_and_four_slots(pool: Pool) -> None:
    took = []
    first = pool.submit("ann", 1, 4, "--steps", 100_000)
    took.append(pool.until_sizes(4))
    pool.until_training(first)

    second = pool.submit("bob", 1, 4, "--steps", 100_000)
    took.append(pool.until_sizes(2, 2))
    pool.until_training(first, second)

    share(pool, "ann", 3.0)
    took.append(pool.until_sizes(3, 1))
    pool.until_training(first, second)

    urgent = pool.submit("eve", 1, 2, "--steps", 100_000, priority=1)
    took.append(pool.until_sizes(1, 1, 2))
    pool.until_training(first, second, urgent)
    finish(pool, urgent)
    took.append(pool.until_sizes(3, 1, 0))
    pool.until_training(first, second)

    failing = pool.submit("ann", 1, 4, "--steps", 100_000, "--fail-at", 5, max_restarts=0)
    took.append(pool.until(lambda: pool.job(failing).size and sum(pool.sizes().values()) == 4))
    assert pool.job(second).size == 1
    pool.until(lambda: pool.job(failing).state is State.FAILED)
    assert "step 5 fails" in (pool.job(failing).failure or "")
    took.append(pool.until_sizes(3, 1, 0, 0))
    pool.until_training(first)

    large = pool.submit("bob", 3, 3, "--steps", 40, "--delay", 0.05)
    pool.until(lambda: pool.job(large).why is not None)
    assert pool.job(large).state is State.QUEUED
    finish(pool, second)
    took.append(pool.until_sizes(1, 0, 0, 0, 3))
    pool.until(lambda: pool.job(large).state is State.SUCCEEDED)
    took.append(pool.until_sizes(4, 0, 0, 0, 0))
    pool.until_training(first)
    finish(pool, first)

    print("sizes after", [f"{seconds:.1f}" for seconds in took], f"s; idle for {pool.idle:.1f} s at most")
    assert pool.overlaps() == []
    assert {use.device for use in journals.uses(pool.out)} == {"0", "1", "2", "3"}
    for job in (first, second, urgent, large):
        done = pool.steps(job)
        assert done == list(range(1, len(done) + 1))
        assert pool.job(job).step == len(done)
    assert len(pool.steps(large)) == 40
    assert max(took) < SOON
    assert pool.idle < IDLE
    history = pool.store.history.newest(job=first)
    resized = [change.after for change in history if change.after != change.before]
    assert resized[:4] == [4, 2, 3, 1]
    assert pool.job(first).resizes >= 6


@pytest.mark.full
def test_a_job_is_paused_and_resumed_and_stopped(pool: Pool) -> None:
    job = pool.submit("ann", 1, 2, "--steps", 100_000)
    pool.until_training(job)
    pool.until(lambda: len(pool.steps(job)) > 5)
    pool.wish(job, Wanted.PAUSE)
    pool.until(lambda: pool.job(job).state is State.PAUSED)
    assert pool.sizes() == {}
    done = pool.steps(job)
    pool.wish(job, Wanted.RUN)
    pool.until(lambda: len(pool.steps(job)) > len(done) + 5)
    pool.wish(job, Wanted.STOP)
    pool.until(lambda: pool.job(job).state is State.STOPPED)
    assert pool.steps(job) == list(range(1, len(pool.steps(job)) + 1))


@pytest.mark.full
def test_a_job_whose_launcher_is_killed_goes_on(pool: Pool) -> None:
    job = pool.submit("ann", 1, 2, "--steps", 100_000, checkpoint_interval=0.5)
    pool.until_training(job)
    pool.until(lambda: [event for event in pool.events(job) if event["event"] == "checkpointed"])
    pid = pool.job(job).launcher_pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    pool.until(lambda: pool.job(job).launcher_pid not in (None, pid))
    assert pool.job(job).restarts == 1
    pool.until_training(job)
    pool.until(lambda: [event for event in pool.events(job) if event["event"] == "restored"])
    finish(pool, job)
    assert pool.overlaps() == []
