"""WMLA programs in a pool: as many workers as they can use."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.service.jobs.states import State
from harness import PROGRAMS
from pool_harness import Pool


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    one = Pool(tmp_path / "a pool")
    one.start()
    yield one
    print(one.report())
    one.close()


@pytest.mark.full
def test_what_a_program_cannot_use_is_for_others(pool: Pool, tmp_path: Path) -> None:
    more = tmp_path / "more"
    program = ["python", *pool.pooled("--steps", 100_000)[1:]]
    acts = [
        {"train": {"number": 1, "program": program, "max_workers": 3}},
        {"wait_for": str(more)},
        {"ask": {"type": "limit", "max_workers": 1}},
        {"answer": "check"},
    ]
    code = PROGRAMS / "wmla model"
    command = ("main.py", json.dumps(acts))
    first = pool.submit_command("ann", 1, 4, command, code, framework=Framework.ELASTIC)
    pool.until_sizes(3)
    pool.until_training(first)
    pool.until(lambda: "its program has said that it can use 3 at most" in pool.job(first).reason)
    assert pool.job(first).max == 4
    second = pool.submit("bob", 1, 4, "--steps", 100_000)
    pool.until_sizes(2, 2)
    more.touch()
    pool.until_sizes(1, 3)
    pool.until_training(first, second)
    for job in (first, second):
        (pool.out / f"finish.{job}").touch()
        pool.until(lambda job=job: pool.job(job).state is State.SUCCEEDED)
    assert pool.overlaps() == []
