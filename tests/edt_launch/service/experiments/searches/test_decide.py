from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from edt_launch.service.experiments.records import SearchState, SearchWanted, TrialState
from edt_launch.service.experiments.searches.decide import (
    HOPELESS,
    STARTS,
    StopTrial,
    UpdateTrial,
)
from edt_launch.service.experiments.searches.plan import Next, total
from edt_launch.service.experiments.searches.spec import ranking
from edt_launch.service.jobs.states import State
from examples import fewer
from plays import Play, budgets, specified

algorithms = some.sampled_from(["random", "grid", "hyperband", "tpe", "bayesian"])
STEPPED = {"rate": {"min": 0.1, "max": 1, "step": 0.1}}


def play(algorithm: str, **fields: Any) -> Play:
    algo = fields.pop("algo", {})
    settings = budgets(9) if algorithm == "hyperband" else {}
    return Play(specified(algorithm, STEPPED, **settings, **algo), **fields)


@fewer(1 / 5)
@given(
    algorithms,
    some.integers(1, 12),
    some.integers(1, 5),
    some.sampled_from([0.0, 0.3, 1.0]),
    some.integers(0, 99),
)
def test_a_search_keeps_its_limits_and_ends(
    algorithm: str, most: int, at_once: int, fails: float, seed: int
) -> None:
    one = play(algorithm, fails=fails, seed=seed, algo={"max_trials": most, "max_parallel": at_once})
    one.run()
    trials = list(one.trials.values())
    assert all(trial.has_ended for trial in trials)
    assert len(trials) <= total(one.spec) <= most
    if fails == 0:
        assert len(trials) == total(one.spec)
    finished = [trial for trial in trials if trial.state is TrialState.SUCCEEDED]
    assert one.search.state is (SearchState.SUCCEEDED if finished else SearchState.FAILED)
    metrics = [trial.metric for trial in finished if trial.metric is not None]
    assert len(metrics) == len(finished)
    best = ranking(one.spec.objective, trials)[:1]
    assert [trial.metric for trial in best] == ([min(metrics)] if metrics else [])


@fewer(3 / 20)
@given(algorithms, some.integers(1, 4), some.integers(0, 99), some.integers(1, 3))
def test_nothing_starts_when_time_is_over_and_what_runs_is_stopped(
    algorithm: str, at_once: int, seed: int, minutes: int
) -> None:
    limits = {"max_minutes": minutes, "max_trials": 100, "max_parallel": at_once}
    one = play(algorithm, seed=seed, algo=limits)
    for _ in range(1000):
        decided = one.decide()
        if one.search.started is not None and not one.search.has_ended:
            over = one.search.started + 60 * minutes
            assert decided.again_at in (None, over)
            if one.now >= over:
                assert not any(isinstance(action, Next) for action in decided.actions)
                live = {number for number, trial in one.trials.items() if not trial.has_ended}
                assert live <= one.stopped
        if one.search.has_ended:
            break
        one.step()
    assert one.search.has_ended
    assert all(trial.has_ended for trial in one.trials.values())


@fewer(1 / 10)
@given(algorithms, some.integers(0, 99), some.integers(0, 8))
def test_a_restarted_service_chooses_what_it_would_have_chosen(algorithm: str, seed: int, when: int) -> None:
    """Trials that were chosen, but whose service died before it submitted them, are chosen again."""
    one = play(algorithm, seed=seed, algo={"max_trials": 6, "max_parallel": 3})
    other = play(algorithm, seed=seed, algo={"max_trials": 6, "max_parallel": 3})
    one.run()
    for turn in range(2000):
        other.decide()
        if turn == when:
            for number, trial in list(other.trials.items()):
                if not trial.has_ended and other.jobs[number].state is State.QUEUED:
                    del other.trials[number], other.jobs[number]
            other.decide()
        if other.search.has_ended:
            break
        other.step()
    assert {number: trial.parameters for number, trial in one.trials.items()} == {
        number: trial.parameters for number, trial in other.trials.items()
    }


def test_it_starts_a_few_at_a_time_and_looks_again_at_once() -> None:
    one = play("random", algo={"max_trials": 6, "max_parallel": 6})
    for starts, again_at in ((STARTS, one.now), (2, None), (0, None)):
        decided = one.decide()
        assert sum(isinstance(action, Next) for action in decided.actions) == starts
        assert decided.again_at == again_at


def test_a_stopped_search_waits_for_its_trials() -> None:
    one = play("random")
    one.decide()
    one.search = replace(one.search, wanted=SearchWanted.STOP)
    assert {type(action) for action in one.decide().actions} == {StopTrial}
    assert one.decide().actions == ()  # they have been told
    for number, job in one.jobs.items():
        one.jobs[number] = replace(job, state=State.STOPPED, reason="stopped")
    one.decide()
    assert one.search.state is SearchState.STOPPED
    assert {trial.state for trial in one.trials.values()} == {TrialState.STOPPED}


def test_force_does_not_wait() -> None:
    one = play("random")
    one.decide()
    one.search = replace(one.search, wanted=SearchWanted.FORCE)
    one.decide()
    assert one.search.state is SearchState.STOPPED
    assert one.stopped == {0, 1}
    assert all(trial.has_ended for trial in one.trials.values())


def test_a_trial_whose_job_was_deleted_is_over() -> None:
    one = play("random")
    one.decide()
    del one.jobs[0]
    note = one.decide().actions[0]
    assert isinstance(note, UpdateTrial)
    assert (note.trial.state, note.trial.reason) == (TrialState.STOPPED, "its job was deleted")


def test_the_reason_of_a_failure_is_kept() -> None:
    one = play("random", algo={"max_trials": 1})
    one.decide()
    one.jobs[0] = replace(one.jobs[0], state=State.FAILED, failure="exit code 3", ended=200.0)
    one.decide()
    assert one.trials[0].reason == "exit code 3"
    assert one.search.reason == "none of 1 trials has finished: exit code 3"


@pytest.mark.parametrize("most, ends", [(None, True), (100, False)])
def test_a_search_without_a_limit_gives_up(most: int | None, ends: bool) -> None:
    one = play("random", fails=1.0, algo={"max_trials": most, "max_parallel": 1})
    one.run()
    assert one.search.state is SearchState.FAILED
    assert len(one.trials) == (HOPELESS if ends else 100)
