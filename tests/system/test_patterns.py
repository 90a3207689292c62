"""Loops with several passes, several optimizers, samplers and streams train the same bits everywhere."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness import PROGRAMS, ElasticJob
from test_exact import MPI_ENVIRONMENT, MPIRUN
from tiers import full

PATTERNS = PROGRAMS / "patterns.py"
STEPS = 9
CHANGES = [(1, 3), (2, 1), (3, 2), (5, 4), (6, 3)]
"""After 3 and 6 steps an epoch has ended."""


def final(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "final.json").read_text())
    return found


def run_alone(pattern: str, folder: Path) -> str:
    folder.mkdir()
    subprocess.run([sys.executable, PATTERNS, pattern, folder], check=True, stdin=subprocess.DEVNULL)
    sha: str = final(folder)["sha"]
    return sha


NAMES = (
    *(
        "gan",
        "sam",
        "lbfgs",
        "critic",
        "shared",
        "weighted",
        "bucketed",
        "streamed",
        "sharded",
        "hugging_face",
    ),
    *("images", "compiled", "transformer"),
)
QUICK = ("gan", "sharded")


@pytest.mark.parametrize("pattern", [name if name in QUICK else full(name) for name in NAMES])
def test_a_pattern_trains_the_same_bits_through_five_resizes(
    pattern: str, job: ElasticJob, tmp_path: Path
) -> None:
    expected = run_alone(pattern, tmp_path / "alone")
    job.allocate(2)
    job.start(PATTERNS, pattern, job.results, "--changes", json.dumps(CHANGES))
    for number, (_, size) in enumerate(CHANGES):
        job.until((job.results / f"change.{number}").exists)
        job.allocate(size)
    assert job.end() == 0, job.stdout + job.stderr
    found = final(job.results)
    sizes = [2]
    for step in range(1, len(found["sizes"])):
        sizes.append(dict(CHANGES).get(step, sizes[-1]))
    assert found == {"sha": expected, "sizes": sizes}


@pytest.mark.full
@pytest.mark.parametrize("pattern", NAMES)
def test_a_pattern_trains_the_same_bits_in_any_fixed_world(
    pattern: str, job: ElasticJob, tmp_path: Path
) -> None:
    expected = run_alone(pattern, tmp_path / "alone")
    (tmp_path / "mpi").mkdir()
    command = [*MPIRUN, "3", sys.executable, PATTERNS, pattern, tmp_path / "mpi"]
    subprocess.run(command, env=MPI_ENVIRONMENT, stdin=subprocess.DEVNULL, check=True)
    assert final(tmp_path / "mpi")["sha"] == expected
    for size in (1, 3):
        job.allocate(size)
        job.start(PATTERNS, pattern, job.results)
        assert job.end() == 0, job.stdout + job.stderr
        assert final(job.results)["sha"] == expected


def test_a_worker_that_is_lost_between_two_epochs_changes_nothing(job: ElasticJob, tmp_path: Path) -> None:
    expected = run_alone("sam", tmp_path / "alone")
    job.allocate(3)
    job.start(PATTERNS, "sam", job.results, "--hang")
    hanging = job.results / "hanging"
    job.until(hanging.exists)
    (job.results / "killed").touch()
    os.kill(int(hanging.read_text()), signal.SIGKILL)
    assert job.end() == 0, job.stdout + job.stderr
    found = final(job.results)
    assert found["sha"] == expected
    assert found["sizes"][0] == 3
    assert len(found["sizes"]) == STEPS
