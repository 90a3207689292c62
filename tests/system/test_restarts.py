"""What kills all workers, their agent or edt-launch costs only the steps since the last checkpoint."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from attacked import journals

from harness import TRACED, ElasticJob
from programs.traced import BATCH, SAMPLES
from tiers import full

EPOCHS = 6
STEPS = -(-SAMPLES // BATCH)
OPTIONS = ("--checkpoint-interval", "0.2")
ARGUMENTS = ("--deterministic", "--epochs", EPOCHS)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What one process trains."""
    folder = tmp_path_factory.mktemp("alone")
    subprocess.run([sys.executable, TRACED, folder, *map(str, ARGUMENTS)], check=True)
    return final(folder)


def final(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = torch.load(folder / "final.pt", weights_only=True)
    return {name: found[name] for name in ("model", "losses", "lr")}


def begin(job: ElasticJob, delay: float = 0.5) -> None:
    (job.results / "hurry").unlink(missing_ok=True)
    job.start(TRACED, job.results, *ARGUMENTS, "--delay", delay, options=OPTIONS)


def until_checkpointed(job: ElasticJob, count: int) -> None:
    job.until(lambda: len(job.events("checkpointed")) >= count)
    job.remember()


def victims_of(job: ElasticJob, name: str) -> list[psutil.Process]:
    if name == "workers":
        return [job.worker(rank) for rank in range(2)]
    return [job.agent()]


def kill(victims: list[psutil.Process]) -> None:
    assert victims
    for victim in victims:
        victim.kill()


def check(job: ElasticJob, undisturbed: dict[str, Any]) -> None:
    assert job.end() == 0, job.stdout + job.stderr
    torch.testing.assert_close(final(job.results), undisturbed, rtol=0, atol=0)
    assert job.survivors() == []


def samples_by_step(files: set[Path]) -> dict[tuple[int, int], Counter[int]]:
    rows = journals.rows(files)
    steps: dict[tuple[int, int], Counter[int]] = {}
    for row in rows:
        steps.setdefault((row["epoch"], row["step"]), Counter()).update(row["samples"])
    return steps


@pytest.mark.parametrize("victim", ["workers", full("agent")])
def test_what_loses_all_workers_restarts_the_job(
    job: ElasticJob, undisturbed: dict[str, Any], victim: str
) -> None:
    job.allocate(2)
    begin(job)
    until_checkpointed(job, 2)
    kill(victims_of(job, victim))
    job.until(lambda: job.events("restored"))
    check(job, undisturbed)
    (restarting,) = job.events("restarting")
    (restored,) = job.events("restored")
    assert (restarting["restart"], restarting["of"]) == (1, 3)
    assert restored["step"] in [event["step"] for event in job.events("checkpointed")]
    workers = [event["worker"] for event in job.events("started")]
    assert len(set(workers)) == len(workers)


@pytest.mark.full
def test_the_next_coordinator_writes_checkpoints(job: ElasticJob, undisturbed: dict[str, Any]) -> None:
    job.allocate(2)
    begin(job)
    until_checkpointed(job, 1)
    kill([job.worker(0)])
    job.until(lambda: job.size() == 1)
    written = len(job.events("checkpointed"))
    until_checkpointed(job, written + 2)
    check(job, undisturbed)
    assert job.events("checkpoint_failed", "restarting") == []
    newest = max((job.out / "checkpoint").glob("step-*"))
    found = torch.load(newest / "state.pt", weights_only=True)["state"]
    torch.testing.assert_close(found["model"], undisturbed["model"], rtol=0, atol=0)


@pytest.mark.full
@pytest.mark.parametrize("damage", ["none", "truncated"])
def test_a_killed_launcher_goes_on_in_the_same_folder(
    job: ElasticJob, undisturbed: dict[str, Any], damage: str
) -> None:
    job.allocate(2)
    begin(job)
    until_checkpointed(job, 2)
    assert job.process is not None
    job.process.kill()
    job.process.wait()
    psutil.wait_procs(job.family, timeout=30)
    before = set(job.results.glob("trace.*"))
    (*_, older, newest) = sorted((job.out / "checkpoint").glob("step-*"))
    if damage == "truncated":
        os.truncate(newest / "state.pt", 100)
    begin(job)
    job.until(lambda: job.events("restored"))
    check(job, undisturbed)
    (restored,) = job.events("restored")
    assert restored["path"] == str(older if damage == "truncated" else newest)
    skipped = [event["path"] for event in job.events("checkpoint_skipped")]
    assert skipped == ([str(newest)] if damage == "truncated" else [])
    gone_on = [line for line in job.stderr.splitlines() if "going on from step" in line]
    assert len(gone_on) == 1
    assert f"going on from step {restored['step']}: {restored['path']}" in gone_on[0]
    assert ("is skipped: state.pt has 100 bytes instead of" in job.stderr) == (damage == "truncated")
    # The history that counts: of the first job up to the checkpoint, of the second one from there.
    first, second = samples_by_step(before), samples_by_step(set(job.results.glob("trace.*")) - before)
    order = [(epoch, step) for epoch in range(EPOCHS) for step in range(STEPS)]
    begun = restored["step"]
    history = [first[place] for place in order[:begun]] + [second[place] for place in order[begun:]]
    assert sorted(second) == order[begun:]
    for epoch in range(EPOCHS):
        used = sum(history[epoch * STEPS : (epoch + 1) * STEPS], Counter())
        assert used == Counter(range(SAMPLES))


@pytest.mark.full
def test_a_job_that_has_ended_has_nothing_left_to_do(job: ElasticJob, undisturbed: dict[str, Any]) -> None:
    job.allocate(1)
    begin(job, delay=0.0)
    check(job, undisturbed)
    steps = len(job.trace())
    begin(job, delay=0.0)
    check(job, undisturbed)
    assert len(job.trace()) == steps
    assert job.events("restored")[-1]["step"] == EPOCHS * STEPS
