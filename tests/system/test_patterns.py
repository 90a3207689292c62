"""Loops with several passes, several optimizers, samplers and streams train the same bits everywhere."""

import json
import os
import signal
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from harness import MPI_ENVIRONMENT, MPIRUN, PROGRAMS, ElasticJob, run
from tiers import full

PATTERNS = PROGRAMS / "patterns.py"
STEPS = 9
CHANGES = [(1, 3), (3, 1), (4, 2)]
"""In each pattern's training; after 3 and 6 steps an epoch has ended."""

SOME = ("gan", "sharded")
ALL = (
    *(*SOME, "sam", "weighted", "lbfgs", "shared", "bucketed", "streamed"),
    *("hugging_face", "images", "compiled"),
)

Alone = dict[str, str]
"""The SHA-256 of each pattern's training in one process."""


def final(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "final.json").read_text())
    return found


def shas(folder: Path) -> Alone:
    return {name: each["sha"] for name, each in final(folder).items()}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Any:
    @cache
    def trained(*patterns: str) -> Alone:
        folder = tmp_path_factory.mktemp("alone")
        run(sys.executable, PATTERNS, folder, *patterns)
        return shas(folder)

    return trained


@pytest.mark.parametrize("patterns", [SOME, full(ALL)], ids=len)
def test_patterns_train_the_same_bits_through_resizes(
    patterns: tuple[str, ...], job: ElasticJob, alone: Any
) -> None:
    job.allocate(2)
    job.start(PATTERNS, job.results, *patterns, "--changes", json.dumps(CHANGES))
    for number, size in enumerate([size for _, size in CHANGES] * len(patterns)):
        job.until((job.results / f"change.{number}").exists)
        job.allocate(size)
    assert job.end() == 0, job.stdout + job.stderr
    assert shas(job.results) == alone(*patterns)
    for each in final(job.results).values():
        assert each["sizes"][:4] == [2, 3, 3, 1]
        assert set(each["sizes"][4:]) == {2}


@pytest.mark.full
def test_patterns_train_the_same_bits_in_a_fixed_world(tmp_path: Path, alone: Any) -> None:
    run(*MPIRUN, 3, sys.executable, PATTERNS, tmp_path, *ALL, **MPI_ENVIRONMENT)
    assert shas(tmp_path) == alone(*ALL)


@pytest.mark.full
def test_a_worker_that_is_lost_between_two_epochs_changes_nothing(job: ElasticJob, alone: Any) -> None:
    job.allocate(3)
    job.start(PATTERNS, job.results, "sam", "--hang")
    hanging = job.results / "hanging"
    job.until(hanging.exists)
    (job.results / "killed").touch()
    os.kill(int(hanging.read_text()), signal.SIGKILL)
    assert job.end() == 0, job.stdout + job.stderr
    assert shas(job.results) == alone("sam")
    sizes = final(job.results)["sam"]["sizes"]
    assert sizes[0] == 3
    assert len(sizes) == STEPS
