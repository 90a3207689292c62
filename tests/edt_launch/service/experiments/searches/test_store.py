from dataclasses import replace

from edt_launch.service.db.store import Store
from edt_launch.service.experiments.records import ExperimentRecord, RunRecord, TrialState
from edt_launch.service.experiments.searches.plan import Next
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.states import State
from plays import searching

SEARCH = searching(kind="wmla", template={"args": "x"}, file_name="code", seed=2**32 - 1, total=12)
OTHER = replace(SEARCH, id="hbbbbbbbb", name="bob-1", owner="bob")


def trial(number: int, **fields: object) -> RunRecord:
    next_one = Next(number, {"rate": 0.1 + number, "k": 3}, {"rate": 0.3, "k": "ü"}, 27, "")
    made = next_one.run(SEARCH, f"raaaaaaa{number}", 101.0)
    return replace(made, **fields)  # type: ignore[arg-type]


def found_by(store: Store) -> ExperimentRecord:
    found = store.experiments.search(SEARCH.name)
    assert found is not None
    return found


def test_trials_are_counted_and_the_best_is_found(store: Store) -> None:
    store.experiments.add(SEARCH)
    store.experiments.add(OTHER)
    metrics = (None, 0.5, 0.25, 0.25, 0.5)
    for number, metric in enumerate(metrics):
        state = TrialState.RUNNING if metric is None else TrialState.SUCCEEDED
        store.experiments.add_trial(trial(number, metric=metric, state=state))
    ids = [SEARCH.id, OTHER.id]
    counts = {TrialState.RUNNING: 1, TrialState.SUCCEEDED: 4}
    assert store.experiments.trial_counts(ids) == {SEARCH.id: counts, OTHER.id: {}}
    best = [store.experiments.best(ids, largest) for largest in (False, True)]
    assert [{id_: one.place for id_, one in found.items()} for found in best] == [
        {SEARCH.id: 2},
        {SEARCH.id: 1},
    ]


def test_a_search_is_forgotten_with_its_jobs_or_not_at_all(store: Store) -> None:
    assert store.experiments.add(SEARCH)
    for id_ in ("jaaaaaaaa", "jbbbbbbbb"):
        store.jobs.add(JobRecord(id_, "ann", ("x",), 1, 1, 100.0))
        store.jobs.move(id_, State.STOPPED, "for the test", 101.0)
    seen = found_by(store)
    assert not store.experiments.delete_search(replace(seen, ended=99.0), ["jaaaaaaaa"])
    assert store.jobs.ids() == {"jaaaaaaaa", "jbbbbbbbb"}
    assert store.experiments.delete_search(seen, ["jaaaaaaaa"])
    assert (store.experiments.searches(), store.jobs.ids()) == ([], {"jbbbbbbbb"})
