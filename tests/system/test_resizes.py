"""Resizing a running job changes nothing but its speed."""

import random
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
import torch

from harness import TRACED, ElasticJob
from programs.traced import BATCH, SAMPLES
from tiers import full

EPOCHS = 40
STEPS_PER_EPOCH = -(-SAMPLES // BATCH)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The same training in one process, without a launcher."""
    folder = tmp_path_factory.mktemp("undisturbed")
    subprocess.run([sys.executable, TRACED, folder, "--epochs", str(EPOCHS)], check=True)
    return dict(torch.load(folder / "final.pt"))


def check_trace(job: ElasticJob) -> None:
    """Every step once, by all workers of one world; every sample of an epoch exactly once."""
    by_step = defaultdict(list)
    for row in job.trace():
        by_step[row["epoch"], row["step"]].append(row)
    assert sorted(by_step) == [(e, s) for e in range(EPOCHS) for s in range(STEPS_PER_EPOCH)]
    seen: dict[int, Counter[int]] = defaultdict(Counter)
    for (epoch, step), rows in by_step.items():
        assert sorted(row["rank"] for row in rows) == list(range(rows[0]["size"])), (epoch, step)
        seen[epoch].update(sample for row in rows for sample in row["samples"])
    for epoch in range(EPOCHS):
        assert seen[epoch] == Counter(range(SAMPLES)), epoch


def check_results(job: ElasticJob, undisturbed: dict[str, Any]) -> None:
    final = torch.load(job.results / "final.pt")
    assert len(final["losses"]) == EPOCHS * STEPS_PER_EPOCH
    assert final["losses"] == undisturbed["losses"]
    assert final["lr"] == undisturbed["lr"]
    for name, expected in undisturbed["model"].items():
        assert torch.equal(final["model"][name], expected), name


def check_quiet(job: ElasticJob) -> None:
    """A resize shows the user neither a traceback nor C++'s last words."""
    shown = job.stdout + job.stderr
    for noise in ("Traceback", "terminate called", "uncaught exception", "Aborted", "Terminated", "Error"):
        assert noise not in shown, shown
    for log in (job.out / "log").glob("rank.*"):  # edt-launch does not show that
        assert "uncaught exception" not in log.read_text()


@pytest.mark.parametrize("seed", [0, *(full(seed) for seed in (1, 2))])
def test_resizes_at_random_steps_leave_no_trace(
    job: ElasticJob, undisturbed: dict[str, Any], seed: int
) -> None:
    generator = random.Random(seed)
    job.allocate(2)
    job.start(TRACED, job.results, "--epochs", EPOCHS, "--delay", 0.3, "--loader-workers", seed % 2)
    for size in (4, 1, 3, 2):
        job.until_steps(job.steps() + generator.randint(1, 4))
        job.allocate(size)
        job.until_size(size)
    assert job.end() == 0
    assert [world["size"] for world in job.events("world")] == [2, 4, 1, 3, 2]
    check_trace(job)
    check_results(job, undisturbed)
    check_quiet(job)
    assert job.survivors() == []
    assert not job.events("failed")
    assert "trained" in job.stdout


@pytest.mark.full
@pytest.mark.parametrize("seed", [0, 1])
def test_the_last_of_many_changes_is_always_reached(
    job: ElasticJob, undisturbed: dict[str, Any], seed: int
) -> None:
    """Changes while workers boot, in the middle of a resize, and several within a second."""
    generator = random.Random(seed)
    job.allocate(2)
    job.start(TRACED, job.results, "--epochs", EPOCHS, "--delay", 0.3)
    job.until(lambda: job.events("started"))
    for _ in range(15):
        job.allocate(generator.choice([1, 2, 3, 4]))
        time.sleep(generator.choice([0.0, 0.05, 0.3, 1.0, 2.0]))
    last = 1 + generator.randrange(3)
    job.allocate(last)
    job.until_size(last)
    assert job.end() == 0
    assert job.events("world")[-1]["size"] == last
    check_trace(job)
    check_results(job, undisturbed)
    check_quiet(job)
    assert job.survivors() == []


@pytest.mark.full
def test_a_storm_of_changes_is_coalesced(job: ElasticJob, undisturbed: dict[str, Any]) -> None:
    """At least sixty changes, several a second at times: training gets on, and the last one is reached."""
    generator = random.Random(7)
    job.allocate(2)
    job.start(TRACED, job.results, "--epochs", EPOCHS, "--delay", 0.1)
    job.until(lambda: job.events("started"))
    changes = 0
    while changes < 60 or job.steps() <= 20:
        job.allocate(generator.choice([1, 2, 3, 4]))
        changes += 1
        time.sleep(generator.expovariate(2.4))
    last = 1 + generator.randrange(3)
    job.allocate(last)
    job.until_size(last)
    assert len(job.events("world")) < 0.75 * changes
    assert job.end() == 0
    assert job.events("world")[-1]["size"] == last
    check_trace(job)
    check_results(job, undisturbed)
    check_quiet(job)
    assert job.survivors() == []


COUNTING = """
import time
import edt_hvd

edt_hvd.init()
state = edt_hvd.TorchState(count=0)

@edt_hvd.elastic
def train(state):
    while state.count < 120:
        time.sleep(0.5 if edt_hvd.size() < 3 else 0)
        state.count += 1
        state.commit()
    print(f"counted to {state.count} on {edt_hvd.size()}", flush=True)

train(state)
"""


@pytest.mark.full
def test_a_state_without_tensors_reaches_a_newcomer(job: ElasticJob, tmp_path: Path) -> None:
    script = tmp_path / "counting.py"
    script.write_text(COUNTING)
    job.allocate(2)
    job.start(script)
    job.until_size(2)
    job.allocate(3)
    job.until_size(3)
    assert job.end() == 0
    assert job.stdout.count("counted to 120 on 3") == 3
