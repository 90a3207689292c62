from dataclasses import replace

from edt_launch.service.database.records import (
    ExperimentRecord,
    ExperimentState,
    ExperimentWanted,
    JobRecord,
    TrialRecord,
    TrialState,
)
from edt_launch.service.database.store import Store
from edt_launch.service.states import State

EXPERIMENT = ExperimentRecord(
    "haaaaaaaa", "ann-1", "ann", {"metric": "loss"}, "code", 2**32 - 1, 100.0, "wmla", {"args": "x"}, 12
)
OTHER = replace(EXPERIMENT, id="hbbbbbbbb", name="bob-1", owner="bob")


def trial(number: int, **fields: object) -> TrialRecord:
    made = TrialRecord(
        EXPERIMENT.id, number, {"rate": 0.1 + number, "k": 3}, {"rate": 0.3, "k": "ü"}, 27, 101.0
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def found_by(store: Store) -> ExperimentRecord:
    found = store.experiments.get(EXPERIMENT.name)
    assert found is not None
    return found


def test_an_experiment_comes_back_as_it_was_stored(store: Store) -> None:
    assert store.experiments.add(EXPERIMENT)
    found = found_by(store)
    assert found == replace(EXPERIMENT, number=found.number)
    assert store.experiments.all() == store.experiments.live() == [found]
    assert store.experiments.get(EXPERIMENT.id) == found
    assert store.experiments.get("nobody") is None


def test_a_name_is_given_once(store: Store) -> None:
    assert store.experiments.add(EXPERIMENT)
    assert not store.experiments.add(replace(OTHER, name=EXPERIMENT.name))
    assert store.experiments.add(OTHER)
    assert store.experiments.ids() == {EXPERIMENT.id, OTHER.id}
    assert [experiment.owner for experiment in store.experiments.all("bob")] == ["bob"]
    assert store.experiments.all(kind="") == []
    first, second = store.experiments.all(kind="wmla")
    assert [one.id for one in store.experiments.page(None, 0, 1)] == [first.id]
    assert [one.id for one in store.experiments.page(None, first.number, 9)] == [second.id]
    assert [one.id for one in store.experiments.page("bob", 0, 9)] == [second.id]


def test_an_id_comes_before_a_name_that_looks_like_it(store: Store) -> None:
    assert store.experiments.add(replace(OTHER, name=EXPERIMENT.id))
    assert store.experiments.add(EXPERIMENT)
    found = store.experiments.get(EXPERIMENT.id)
    assert found is not None
    assert found.id == EXPERIMENT.id


def test_a_page_has_what_a_listing_tells(store: Store) -> None:
    told = {"metric": "loss", "objective": "maximize", "algorithm": "list"}
    long = replace(EXPERIMENT, definition={**told, "configurations": [{"x": 1}] * 100})
    assert store.experiments.add(long)
    (shown,) = store.experiments.page(None, 0, 10)
    assert shown == replace(long, number=shown.number, definition=told, template={})


def test_trials_are_counted_and_the_best_is_found(store: Store) -> None:
    store.experiments.add(EXPERIMENT)
    store.experiments.add(OTHER)
    metrics = (None, 0.5, 0.25, 0.25, 0.5)
    for number, metric in enumerate(metrics):
        state = TrialState.RUNNING if metric is None else TrialState.SUCCEEDED
        store.experiments.add_trial(trial(number, metric=metric, state=state))
    ids = [EXPERIMENT.id, OTHER.id]
    counts = {TrialState.RUNNING: 1, TrialState.SUCCEEDED: 4}
    assert store.experiments.counts(ids) == {EXPERIMENT.id: counts, OTHER.id: {}}
    best = [store.experiments.best(ids, largest) for largest in (False, True)]
    assert [{id_: one.number for id_, one in found.items()} for found in best] == [
        {EXPERIMENT.id: 2},
        {EXPERIMENT.id: 1},
    ]


def test_an_experiment_is_forgotten_with_its_jobs_or_not_at_all(store: Store) -> None:
    assert store.experiments.add(EXPERIMENT)
    for id_ in ("jaaaaaaaa", "jbbbbbbbb"):
        store.jobs.add(JobRecord(id_, "ann", ("x",), 1, 1, 100.0))
        store.jobs.move(id_, State.STOPPED, "for the test", 101.0)
    seen = found_by(store)
    assert not store.experiments.delete(replace(seen, ended=99.0), ["jaaaaaaaa"])
    assert store.jobs.ids() == {"jaaaaaaaa", "jbbbbbbbb"}
    assert store.experiments.delete(seen, ["jaaaaaaaa"])
    assert (store.experiments.ids(), store.jobs.ids()) == (frozenset(), {"jbbbbbbbb"})


def test_a_trial_comes_back_as_it_was_stored(store: Store) -> None:
    store.experiments.add(EXPERIMENT)
    store.experiments.add(OTHER)
    ended = trial(
        1,
        exec="wmla-3",
        driver="driver-1",
        job="jaaaaaaaa",
        state=TrialState.SUCCEEDED,
        metric=-0.25,
        ended=7.0,
    )
    store.experiments.add_trial(trial(1))
    store.experiments.add_trial(trial(0))
    store.experiments.update_trial(ended)
    assert store.experiments.trials(EXPERIMENT.id) == [trial(0), ended]
    assert store.experiments.trials_of([EXPERIMENT.id, OTHER.id]) == {
        EXPERIMENT.id: [trial(0), ended],
        OTHER.id: [],
    }


def test_what_is_wanted_comes_true_in_time_only(store: Store) -> None:
    store.experiments.add(EXPERIMENT)
    assert store.experiments.set_wanted(EXPERIMENT.id, ExperimentWanted.STOP, {ExperimentState.QUEUED})
    assert found_by(store).wanted is ExperimentWanted.STOP
    store.experiments.update(EXPERIMENT.id, state=ExperimentState.STOPPED, ended=8.0, reason="stopped")
    assert store.experiments.live() == []
    assert not store.experiments.set_wanted(
        EXPERIMENT.id, ExperimentWanted.FORCE, {ExperimentState.QUEUED, ExperimentState.RUNNING}
    )


def test_it_starts_again_without_some_trials(store: Store) -> None:
    store.experiments.add(EXPERIMENT)
    for number in range(3):
        store.experiments.add_trial(trial(number))
    store.experiments.set_wanted(EXPERIMENT.id, ExperimentWanted.STOP, set(ExperimentState))
    store.experiments.update(
        EXPERIMENT.id, state=ExperimentState.STOPPED, started=7.0, ended=8.0, reason="stopped"
    )
    ended = found_by(store)
    assert store.experiments.start_again(ended, [0, 2])
    assert not store.experiments.start_again(ended, [1])
    found = found_by(store)
    assert found == replace(EXPERIMENT, number=found.number)
    assert [one.number for one in store.experiments.trials(EXPERIMENT.id)] == [1]


def test_trials_go_with_their_experiment(store: Store) -> None:
    store.experiments.add(EXPERIMENT)
    store.experiments.add_trial(trial(0))
    experiment = found_by(store)
    assert not store.experiments.delete(replace(experiment, state=ExperimentState.STOPPED))
    assert store.experiments.delete(experiment)
    assert store.experiments.trials(EXPERIMENT.id) == []
    assert store.experiments.all() == []
