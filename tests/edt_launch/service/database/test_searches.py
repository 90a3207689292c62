from dataclasses import replace

from edt_launch.service.database.search_records import (
    SearchRecord,
    SearchState,
    TrialRecord,
    TrialState,
    Wish,
)
from edt_launch.service.database.store import Store

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


def test_a_search_comes_back_as_it_was_stored(store: Store) -> None:
    assert store.searches.add(SEARCH)
    found = found_by(store)
    assert found == replace(SEARCH, number=found.number)
    assert store.searches.all() == store.searches.live() == [found]
    assert store.searches.get(SEARCH.id) == found
    assert store.searches.get("nobody") is None


def test_a_name_is_given_once(store: Store) -> None:
    assert store.searches.add(SEARCH)
    assert not store.searches.add(replace(OTHER, name=SEARCH.name))
    assert store.searches.add(OTHER)
    assert store.searches.ids() == {SEARCH.id, OTHER.id}
    assert [search.owner for search in store.searches.all("bob")] == ["bob"]
    assert store.searches.all(kind="") == []
    first, second = store.searches.all(kind="wmla")
    assert store.searches.all(limit=1) == [first]
    assert store.searches.all(after=first.number) == [second]


def test_an_id_comes_before_a_name_that_looks_like_it(store: Store) -> None:
    assert store.searches.add(replace(OTHER, name=SEARCH.id))
    assert store.searches.add(SEARCH)
    found = store.searches.get(SEARCH.id)
    assert found is not None
    assert found.id == SEARCH.id


def test_a_trial_comes_back_as_it_was_stored(store: Store) -> None:
    store.searches.add(SEARCH)
    store.searches.add(OTHER)
    ended = trial(
        1,
        exec="wmla-3",
        driver="driver-1",
        job="jaaaaaaaa",
        state=TrialState.SUCCEEDED,
        metric=-0.25,
        ended=7.0,
    )
    store.searches.add_trial(trial(1))
    store.searches.add_trial(trial(0))
    store.searches.update_trial(ended)
    assert store.searches.trials(SEARCH.id) == [trial(0), ended]
    assert store.searches.trials_of([SEARCH.id, OTHER.id]) == {SEARCH.id: [trial(0), ended], OTHER.id: []}


def test_a_wish_comes_true_in_time_only(store: Store) -> None:
    store.searches.add(SEARCH)
    assert store.searches.wish(SEARCH.id, Wish.STOP, {SearchState.QUEUED})
    assert found_by(store).wanted is Wish.STOP
    store.searches.update(SEARCH.id, state=SearchState.STOPPED, ended=8.0, reason="stopped")
    assert store.searches.live() == []
    assert not store.searches.wish(SEARCH.id, Wish.FORCE, {SearchState.QUEUED, SearchState.RUNNING})


def test_it_starts_again_without_some_trials(store: Store) -> None:
    store.searches.add(SEARCH)
    for number in range(3):
        store.searches.add_trial(trial(number))
    store.searches.wish(SEARCH.id, Wish.STOP, set(SearchState))
    store.searches.update(SEARCH.id, state=SearchState.STOPPED, started=7.0, ended=8.0, reason="stopped")
    ended = found_by(store)
    assert store.searches.start_again(ended, [0, 2])
    assert not store.searches.start_again(ended, [1])
    found = found_by(store)
    assert found == replace(SEARCH, number=found.number)
    assert [one.number for one in store.searches.trials(SEARCH.id)] == [1]


def test_trials_go_with_their_search(store: Store) -> None:
    store.searches.add(SEARCH)
    store.searches.add_trial(trial(0))
    search = found_by(store)
    assert not store.searches.delete(replace(search, state=SearchState.STOPPED))
    assert store.searches.delete(search)
    assert store.searches.trials(SEARCH.id) == []
    assert store.searches.all() == []
