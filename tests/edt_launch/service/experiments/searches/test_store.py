from dataclasses import replace

from edt_launch.service.db.store import Store
from edt_launch.service.experiments.searches.records import SearchRecord, TrialRecord, TrialState
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.states import State

SEARCH = SearchRecord(
    "haaaaaaaa", "ann-1", "ann", {"metric": "loss"}, "code", 2**32 - 1, 100.0, "wmla", {"args": "x"}, 12
)
OTHER = replace(SEARCH, id="hbbbbbbbb", name="bob-1", owner="bob")


def trial(number: int, **fields: object) -> TrialRecord:
    made = TrialRecord(SEARCH.id, number, {"rate": 0.1 + number, "k": 3}, {"rate": 0.3, "k": "ü"}, 27, 101.0)
    return replace(made, **fields)  # type: ignore[arg-type]


def found_by(store: Store) -> SearchRecord:
    found = store.searches.get(SEARCH.name)
    assert found is not None
    return found


def test_trials_are_counted_and_the_best_is_found(store: Store) -> None:
    store.searches.add(SEARCH)
    store.searches.add(OTHER)
    metrics = (None, 0.5, 0.25, 0.25, 0.5)
    for number, metric in enumerate(metrics):
        state = TrialState.RUNNING if metric is None else TrialState.SUCCEEDED
        store.searches.add_trial(trial(number, metric=metric, state=state))
    ids = [SEARCH.id, OTHER.id]
    counts = {TrialState.RUNNING: 1, TrialState.SUCCEEDED: 4}
    assert store.searches.counts(ids) == {SEARCH.id: counts, OTHER.id: {}}
    best = [store.searches.best(ids, largest) for largest in (False, True)]
    assert [{id_: one.number for id_, one in found.items()} for found in best] == [
        {SEARCH.id: 2},
        {SEARCH.id: 1},
    ]


def test_a_search_is_forgotten_with_its_jobs_or_not_at_all(store: Store) -> None:
    assert store.searches.add(SEARCH)
    for id_ in ("jaaaaaaaa", "jbbbbbbbb"):
        store.jobs.add(JobRecord(id_, "ann", ("x",), 1, 1, 100.0))
        store.jobs.move(id_, State.STOPPED, "for the test", 101.0)
    seen = found_by(store)
    assert not store.searches.delete(replace(seen, ended=99.0), ["jaaaaaaaa"])
    assert store.jobs.ids() == {"jaaaaaaaa", "jbbbbbbbb"}
    assert store.searches.delete(seen, ["jaaaaaaaa"])
    assert (store.searches.ids(), store.jobs.ids()) == (frozenset(), {"jbbbbbbbb"})
