"""Workers that leave on a notice, or that hang: the others go on, and nothing is lost or done twice."""

import os
import signal
from collections import Counter, defaultdict
from typing import Any

import pytest

from harness import PROGRAMS, TRACED, ElasticJob
from programs.traced import SAMPLES
from tiers import full

EPOCHS = 40


def start(job: ElasticJob, *options: str) -> None:
    job.start(TRACED, job.results, "--epochs", EPOCHS, "--delay", 0.3, options=options)
    job.until_steps(5)


def seen(job: ElasticJob) -> dict[int, Counter[int]]:
    """How often each sample was used, epoch by epoch."""
    found: dict[int, Counter[int]] = defaultdict(Counter)
    for row in job.trace():
        found[row["epoch"]].update(row["samples"])
    return found


def released(job: ElasticJob) -> list[Any]:
    return [event["slot"] for event in job.events("released")]


@pytest.mark.parametrize("rank", [full(0), 2])
def test_a_worker_that_gets_sigterm_leaves_after_its_step(job: ElasticJob, rank: int) -> None:
    job.allocate(3)
    start(job)
    os.kill(job.worker(rank).pid, signal.SIGTERM)
    job.until_size(2)
    job.until(lambda: released(job))
    assert job.end() == 0
    (leaving,) = job.events("leaving")
    assert (leaving["rank"], leaving["reason"]) == (rank, "SIGTERM")
    assert released(job)[0] == leaving["slot"]
    assert not job.events("failed")
    assert f"rank {rank} on localhost has been told to leave: SIGTERM" in job.stderr
    assert seen(job) == {epoch: Counter(range(SAMPLES)) for epoch in range(EPOCHS)}
    assert job.survivors() == []


@pytest.mark.full
def test_a_worker_that_gets_sigterm_before_it_listens_has_left(job: ElasticJob) -> None:
    job.allocate(2)
    job.start(PROGRAMS / "failing.py", "waits", job.results)
    job.until(lambda: len(list(job.results.glob("waits.*"))) == 2)
    victim = next(job.results.glob("waits.*"))
    os.kill(int(victim.suffix[1:]), signal.SIGTERM)
    job.until(lambda: job.events("left"))
    assert job.end() == 0, job.stderr
    (leaving,) = job.events("leaving")
    assert leaving["reason"] == "SIGTERM"
    assert not job.events("failed")
    assert [event["size"] for event in job.events("world")] == [1]


@pytest.mark.full
def test_too_few_that_stay_wait_for_another_slot(job: ElasticJob) -> None:
    job.sizes[1] = "2"
    job.allocate(2, devices=" devices=0,1")
    start(job)
    (job.results / f"leave.{job.worker(1).pid}").touch()
    job.until(lambda: job.events("waiting"))
    (waiting,) = job.events("waiting")
    assert (waiting["have"], waiting["need"]) == (1, 2)
    assert "the spot market" in waiting["missing"][0]["reason"]
    job.until(lambda: released(job) == [1])
    job.allocate(2, devices=" devices=0,2")
    job.until(lambda: len(job.events("world")) == 2)
    assert job.end() == 0
    assert not job.events("failed")
    assert "waiting: 1 of at least 2 workers can run" in job.stderr
    assert seen(job) == {epoch: Counter(range(SAMPLES)) for epoch in range(EPOCHS)}


@pytest.mark.full
@pytest.mark.parametrize("how, rank", [("stopped", 0), ("stopped", 1), ("hangs", 1)])
def test_a_worker_that_hangs_is_named_and_killed(job: ElasticJob, how: str, rank: int) -> None:
    job.allocate(3)
    start(job, "--hang-timeout", "3")
    victim = job.worker(rank).pid
    if how == "stopped":
        os.kill(victim, signal.SIGSTOP)
    else:
        (job.results / f"hang.{victim}").touch()
    job.until_size(2)
    assert job.end() == 0
    (failed,) = job.events("failed")
    assert failed["rank"] == rank
    expected = "has not been heard of for" if how == "stopped" else "has been loading for"
    assert f"rank {rank} on localhost {expected}" in failed["reason"]
    assert failed["reason"] in job.stderr
    assert set(seen(job)) == set(range(EPOCHS))
    assert job.survivors() == []
