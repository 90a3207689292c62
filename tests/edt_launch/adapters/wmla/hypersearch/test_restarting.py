from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from edt_launch.adapters.wmla.hypersearch.restarting import restart
from edt_launch.service import experiments
from edt_launch.service.database.records import ExperimentRecord, ExperimentState
from edt_launch.service.errors import ConflictError, InvalidError, ServiceError
from edt_launch.service.states import State
from laboratory import Laboratory

AT_ONCE = 8
WAYS = {"restart": restart, "delete": experiments.delete}


def stopped(laboratory: Laboratory) -> ExperimentRecord:
    """A search that was stopped before its two trials began."""
    name = laboratory.start()
    laboratory.ann.put(f"hypersearch/{name}")
    laboratory.look()
    for job in laboratory.jobs():
        laboratory.world.go(job.id, State.STOPPED)
    laboratory.look()
    search = laboratory.world.store.experiments.get(name)
    assert search is not None
    assert search.state is ExperimentState.STOPPED
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


@pytest.mark.parametrize("way", WAYS)
def test_who_comes_late_changes_nothing(laboratory: Laboratory, way: str) -> None:
    seen = stopped(laboratory)
    restart(laboratory.world.context, seen)
    laboratory.look()
    jobs = laboratory.jobs()
    assert len(jobs) == 2
    with pytest.raises((InvalidError, ConflictError), match=r"just now|still ending"):
        WAYS[way](laboratory.world.context, seen)
    laboratory.look()
    assert laboratory.jobs() == jobs
    assert [trial["id"] != "" for trial in laboratory.show(seen.name)["experiments"]] == [True, True]


def test_what_has_ended_again_is_not_what_was_seen(laboratory: Laboratory) -> None:
    seen = stopped(laboratory)
    laboratory.world.clock.now += 1
    restart(laboratory.world.context, seen)
    laboratory.ann.put(f"hypersearch/{seen.name}")
    laboratory.look()
    assert laboratory.show(seen.name)["state"] == "STOPPED"
    with pytest.raises(ConflictError, match="just now"):
        experiments.delete(laboratory.world.context, seen)


def test_what_was_deleted_is_not_started_again(laboratory: Laboratory) -> None:
    seen = stopped(laboratory)
    experiments.delete(laboratory.world.context, seen)
    with pytest.raises(InvalidError, match="just now"):
        restart(laboratory.world.context, seen)
    assert laboratory.ann.get("hypersearch").json() == []


@pytest.mark.parametrize("ways", [["restart"] * AT_ONCE, ["restart", "delete"] * (AT_ONCE // 2)])
def test_one_of_many_at_once_succeeds(laboratory: Laboratory, ways: list[str]) -> None:
    search = stopped(laboratory)
    (done,) = at_once(laboratory, ways, search)
    laboratory.look()
    assert len(laboratory.jobs()) == (2 if done == "restart" else 0)
    assert len(laboratory.world.store.jobs.page().jobs) == (2 if done == "restart" else 0)
