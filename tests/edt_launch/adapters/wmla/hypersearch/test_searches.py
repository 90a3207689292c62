import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from hypothesis import given
from hypothesis import strategies as some

from edt_launch.adapters.wmla.hypersearch.searches import (
    MAX_METRICS,
    METRIC_FILE,
    find_metric,
    read_metric,
    restart,
)
from edt_launch.service.errors import ServiceError
from edt_launch.service.experiments.records import ExperimentRecord, SearchState
from edt_launch.service.experiments.searches import service as searches
from edt_launch.service.experiments.searches.spec import Objective
from edt_launch.service.jobs.states import State
from laboratory import Laboratory

AT_ONCE = 8
WAYS = {"restart": restart, "delete": searches.delete}


def stopped(laboratory: Laboratory) -> ExperimentRecord:
    """A search that was stopped before its two trials began."""
    name = laboratory.start()
    laboratory.ann.put(f"hypersearch/{name}")
    laboratory.look()
    for job in laboratory.jobs():
        laboratory.world.go(job.id, State.STOPPED)
    laboratory.look()
    search = laboratory.world.store.experiments.search(name)
    assert search is not None
    assert search.state is SearchState.STOPPED
    return search


def at_once(laboratory: Laboratory, ways: list[str], seen: ExperimentRecord) -> list[str]:
    """Do all of it to a search that all have seen in the same state; what was done."""
    barrier = Barrier(len(ways))

    def attempt(way: str) -> bool:
        barrier.wait()
        try:
            deletions = WAYS[way](laboratory.world.context, seen)
        except ServiceError:
            return False
        for deletion in deletions:
            deletion()
        return True

    with ThreadPoolExecutor(len(ways)) as pool:
        return [way for way, is_done in zip(ways, pool.map(attempt, ways), strict=True) if is_done]


@pytest.mark.parametrize("ways", [["restart"] * AT_ONCE, ["restart", "delete"] * (AT_ONCE // 2)])
def test_one_of_many_at_once_succeeds(laboratory: Laboratory, ways: list[str]) -> None:
    search = stopped(laboratory)
    (done,) = at_once(laboratory, ways, search)
    laboratory.look()
    assert len(laboratory.jobs()) == (2 if done == "restart" else 0)
    assert len(laboratory.world.store.jobs.page().jobs) == (2 if done == "restart" else 0)


@pytest.mark.parametrize("objective, best", [(Objective.MINIMIZE, 0.5), (Objective.MAXIMIZE, 2.0)])
def test_the_best_value_counts(tmp_path: Path, objective: Objective, best: float) -> None:
    entries = [{"steps": 1, "loss": 2}, {"steps": 2, "loss": 0.5}, {"steps": 3, "loss": 0.75}, {"steps": 4}]
    (tmp_path / METRIC_FILE).write_text(json.dumps(entries))
    outcome = read_metric(tmp_path, "loss", objective)
    assert (outcome.metric, outcome.reason) == (best, "")


@pytest.mark.parametrize(
    "content, said",
    [
        (b"[" * 100_000, "no JSON"),
        (b"[1, null, []]", "the metric 'loss' is not in it"),
        (b'[{"loss": NaN}, {"loss": "0,5"}, {"loss": true}, {"loss": 1e999}]', "no finite number"),
        (b" " * (MAX_METRICS + 1), "more than"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / METRIC_FILE).write_bytes(content)
    outcome = read_metric(tmp_path, "loss", Objective.MINIMIZE)
    assert outcome.metric is None
    assert said in outcome.reason
    assert METRIC_FILE in outcome.reason


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / METRIC_FILE
    assert "has not written" in read_metric(tmp_path, "loss", Objective.MINIMIZE).reason
    os.mkfifo(path)
    assert "no file" in read_metric(tmp_path, "loss", Objective.MINIMIZE).reason
    path.unlink()
    path.symlink_to("/etc/hostname")
    assert "cannot be read" in read_metric(tmp_path, "loss", Objective.MINIMIZE).reason


@given(some.binary(max_size=200))
def test_nothing_that_is_in_it_is_a_catastrophe(content: bytes) -> None:
    outcome = find_metric(content, "loss", Objective.MAXIMIZE)
    assert (outcome.metric is None) == bool(outcome.reason)
