"""Projects, definitions, experiments and runs in the database, of each kind."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from sqlalchemy.exc import IntegrityError

from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.db.store import Store
from edt_launch.service.experiments.records import (
    DefinitionRecord,
    Distribution,
    ExperimentRecord,
    ProjectRecord,
    RunRecord,
    TrainingRecord,
    TrialState,
)
from edt_launch.service.experiments.stores.experiments import GoneError
from edt_launch.service.experiments.stores.run_query import RunQuery
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.states import State
from records import write_run

PROJECT = ProjectRecord("paaaaaaaa", "digits", "d", "ann", 1.0, 1.0, "ann")
NET = DefinitionRecord("daaaaaaaa", PROJECT.id, "net", "", "Horovod", ("x", "ü"), "ann", 1.0, 1.0, "ann", 1)
FIRST = ExperimentRecord("xaaaaaaaa", PROJECT.id, "first", "", "mnist", (), "", "", "ann", 1.0, 1.0, "ann")
TRAINING = TrainingRecord(FIRST.id, 0, NET.id, Distribution.ELASTIC, 1, 1, 4)
RUN = RunRecord("raaaaaaaa", FIRST.id, NET.id, "net", 1, "0" * 64, "jaaaaaaaa", "ann", 2.0, {"min": 1})


@pytest.fixture
def filled(store: Store) -> Iterator[Store]:
    for name in ("ann", "bob"):
        store.accounts.add_user(UserRecord(name))
    assert store.projects.add(PROJECT)
    assert store.definitions.add(NET)
    assert store.experiments.add(FIRST, [TRAINING])
    return store


def test_a_run_is_of_one_job_and_outlives_it(filled: Store) -> None:
    filled.jobs.add(JobRecord(RUN.job, "ann", ("x",), 1, 1, 2.0), RUN)
    with pytest.raises(IntegrityError):
        write_run(filled, replace(RUN, id="rbbbbbbbb"))
    assert filled.experiments.live_jobs(FIRST.id) == [RUN.job]
    assert filled.experiments.delete(FIRST.id) == [RUN.job]
    with pytest.raises(GoneError):
        filled.jobs.add(
            JobRecord("jbbbbbbbb", "ann", ("x",), 1, 1, 2.0), replace(RUN, experiment="xbbbbbbbb")
        )
    assert filled.jobs.ids() == {RUN.job}
    filled.jobs.move(RUN.job, State.STOPPED, "for the test", 3.0)
    assert filled.experiments.live_jobs(FIRST.id) == []
    filled.experiments.record({RUN.id: {"state": "stopped"}})
    assert filled.jobs.delete(RUN.job)
    (run,) = filled.experiments.runs(FIRST.id, None, 9)
    assert run == replace(RUN, number=run.number, outcome={"state": "stopped"})
    assert filled.experiments.run(RUN.id) == run
    assert filled.experiments.runs_of_jobs([RUN.job, "jb"]) == {RUN.job: run}
    assert filled.experiments.runs(FIRST.id, None, 9, ["rbbbbbbbb"]) == []
    assert filled.experiments.runs(FIRST.id, run.number, 9) == []
    assert filled.experiments.run_counts([FIRST.id]) == {FIRST.id: 1}
    assert filled.experiments.delete_run(RUN.id)
    assert not filled.experiments.delete_run(RUN.id)


def test_runs_are_found_by_words_and_in_the_order_of_columns(filled: Store) -> None:
    trial = replace(RUN, id="rcccccccc", job=None, name="Deep", place=0, state=TrialState.FAILED)
    job = JobRecord(RUN.job or "", "ann", ("x",), 1, 1, 2.0, name="wide_", tags=("Best", "i"), comment="50 %")
    filled.jobs.add(job, RUN)
    filled.jobs.add(
        replace(job, id="jbbbbbbbb", name="", tags=(), comment=""),
        replace(RUN, id="rbbbbbbbb", job="jbbbbbbbb"),
    )
    filled.experiments.add_trial(trial)
    first, second, third = RUN.id, "rbbbbbbbb", trial.id

    def found(find: str, sort: str = "") -> list[str]:
        return filled.experiments.found(RunQuery(FIRST.id, find, sort))

    assert found("") == found("", "-created") == found("", "nonsense") == [third, second, first]
    assert found("", "created") == [first, second, third]
    assert found("", "name") == [third, second, first]
    assert found("", "comment") == found("", "-tags") == found("", "tags") == [first, third, second]
    assert found("", "state") == [third, second, first]
    assert found("WIDE_") == found("50 %") == found("tag:best") == [first]
    assert found("state:failed deep") == found(trial.id) == [third]
    assert found("tag:%") == found("owner:bob") == found("jbbb deep") == []
    assert [row.id for row in filled.experiments.started_with(FIRST.id)] == [third, second, first]
    filled.experiments.record({first: {"state": "failed"}})
    assert [row.id for row in filled.experiments.without_outcome(FIRST.id, 9)] == [second]
    assert [outcome for _, outcome in filled.experiments.outcomes(FIRST.id)] == [
        None,
        None,
        '{"state": "failed"}',
    ]
