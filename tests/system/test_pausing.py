"""A job that is told to pause: its state is saved, all workers leave, and started again it goes on."""

import signal
from collections import Counter

import pytest

from edt_launch.core.errors import ExitCode
from harness import TRACED, ElasticJob
from programs.traced import SAMPLES

EPOCHS = 10


def start(job: ElasticJob) -> None:
    # So that the only checkpoint is the one that the pause makes.
    options = ("--checkpoint-interval", "100000")
    job.start(TRACED, job.results, "--epochs", EPOCHS, "--delay", 0.3, options=options)


def test_a_paused_job_loses_no_step(job: ElasticJob) -> None:
    job.allocate(2, devices=" devices=4,7")
    start(job)
    job.until_steps(5)
    assert job.process is not None
    job.process.send_signal(signal.SIGUSR1)
    job.until(lambda: job.process is not None and job.process.poll() is not None, running=False)
    assert job.process.returncode == ExitCode.LEFT
    assert "start it again with --output-dir" in job.stderr
    assert job.survivors() == []
    assert {(event["host"], event["device"]) for event in job.events("released")} == {
        ("localhost", "4"),
        ("localhost", "7"),
    }
    assert not job.events("failed", "restarting")
    job.allocate(1, devices=" devices=1")
    start(job)
    job.until(lambda: job.events("restored"))
    assert job.end() == 0
    uses = Counter((row["epoch"], sample) for row in job.trace() for sample in row["samples"])
    assert uses == Counter((epoch, sample) for epoch in range(EPOCHS) for sample in range(SAMPLES))


@pytest.mark.full
def test_what_the_driver_follows_is_told(job: ElasticJob) -> None:
    job.allocate(2, devices=" devices=0,1")
    start(job)
    job.until_steps(3)
    job.allocate(1, devices=" devices=0")
    job.until(lambda: [event["generation"] for event in job.events("following")] == [1, 2])
    job.until_size(1)
    assert job.end() == 0
