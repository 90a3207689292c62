"""Workers that leave on a notice, or that hang: the others go on, and nothing is lost or done twice."""

import os
import signal

import pytest

from harness import PROGRAMS, SLOW, TRACED, ElasticJob, Undisturbed

pytestmark = pytest.mark.full


def start(job: ElasticJob, *options: str) -> None:
    job.start(TRACED, job.results, *SLOW, options=options)
    job.until_steps(3)


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


def test_too_few_that_stay_wait_for_another_slot(job: ElasticJob, undisturbed: Undisturbed) -> None:
    job.sizes[1] = "2"
    job.allocate(2, devices=" devices=0,1")
    start(job)
    (job.results / f"leave.{job.worker(1).pid}").touch()
    job.until(lambda: job.events("waiting"))
    (waiting,) = job.events("waiting")
    assert (waiting["have"], waiting["need"]) == (1, 2)
    assert "the spot market" in waiting["missing"][0]["reason"]
    job.until(lambda: [event["slot"] for event in job.events("released")] == [1])
    job.allocate(2, devices=" devices=0,2")
    job.until(lambda: len(job.events("world")) == 2)
    assert job.end() == 0
    assert not job.events("failed")
    assert "waiting: 1 of at least 2 workers can run" in job.stderr
    undisturbed.check(job)


def test_workers_that_hang_are_named_and_killed(job: ElasticJob, undisturbed: Undisturbed) -> None:
    job.allocate(3)
    start(job, "--hang-timeout", "3")
    os.kill(job.worker(0).pid, signal.SIGSTOP)
    job.until(lambda: job.events("failed"))
    job.until_more_steps(2)
    (job.results / f"hang.{job.worker(1).pid}").touch()
    job.until(lambda: len(job.events("failed")) == 2)
    job.until_more_steps(1)
    assert job.end() == 0
    stopped, loading = job.events("failed")
    assert "rank 0 on localhost has not been heard of for" in stopped["reason"]
    assert "rank 1 on localhost has been loading for" in loading["reason"]
    assert loading["reason"] in job.stderr
    undisturbed.check_final(job.results)
    assert job.survivors() == []
