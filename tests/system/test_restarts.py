"""What ends edt-launch or the agent costs only the steps since the last checkpoint."""

import os
from pathlib import Path

import psutil
import pytest
from attacked import journals

from harness import PATIENCE, SLOW, STEPS, TRACED, ElasticJob, Undisturbed

pytestmark = pytest.mark.full


def begin(job: ElasticJob, *arguments: object) -> None:
    job.start(TRACED, job.results, *(arguments or SLOW), options=("--checkpoint-interval", "0.2"))


def until_checkpointed(job: ElasticJob, count: int) -> None:
    job.until(lambda: len(job.events("checkpointed")) >= count)
    job.remember()


def test_the_loss_of_an_agent_restarts_the_job(job: ElasticJob, undisturbed: Undisturbed) -> None:
    job.allocate(2)
    begin(job)
    until_checkpointed(job, 2)
    job.agent().kill()
    job.until(lambda: job.events("restored"))
    assert job.end() == 0, job.stdout + job.stderr
    undisturbed.check_final(job.results)
    assert len(job.events("restarting")) == 1
    assert job.survivors() == []


def test_a_killed_launcher_goes_on_from_the_newest_checkpoint_that_is_whole(
    job: ElasticJob, undisturbed: Undisturbed
) -> None:
    job.allocate(2)
    begin(job)
    until_checkpointed(job, 3)
    assert job.process is not None
    job.process.kill()
    job.process.wait()
    psutil.wait_procs(job.family, timeout=PATIENCE)
    before = set(job.results.glob("trace.*"))
    (*_, older, newest) = sorted((job.out / "checkpoint").glob("step-*"))
    os.truncate(newest / "state.pt", 100)
    begin(job)
    job.until(lambda: job.events("restored"))
    assert job.end() == 0, job.stdout + job.stderr
    epochs = undisturbed.check_final(job.results)
    (restored,) = job.events("restored")
    assert restored["path"] == str(older)
    assert [event["path"] for event in job.events("checkpoint_skipped")] == [str(newest)]
    assert f"going on from step {restored['step']}: {restored['path']}" in job.stderr
    assert "is skipped: state.pt has 100 bytes instead of" in job.stderr
    # The history that counts: of the first job up to the checkpoint, of the second one from there.
    order = [(epoch, step) for epoch in range(epochs) for step in range(STEPS)]
    after = set(job.results.glob("trace.*")) - before
    assert set(order[: restored["step"]]) <= steps(before)
    assert steps(after) == set(order[restored["step"] :])
    # Started again after its end, it has nothing left to do.
    rows = len(job.trace())
    begin(job, "--epochs", epochs)
    assert job.wait() == 0, job.stderr
    assert len(job.trace()) == rows
    assert job.events("restored")[-1]["step"] == epochs * STEPS


def steps(files: set[Path]) -> set[tuple[int, int]]:
    return {(row["epoch"], row["step"]) for row in journals.rows(files)}
