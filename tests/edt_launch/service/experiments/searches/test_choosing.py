from dataclasses import replace
from typing import Any

import pytest

from edt_launch.service.experiments.records import RunRecord, TrialState
from edt_launch.service.experiments.searches.choosing import Chooser
from edt_launch.service.experiments.searches.plan import Next
from edt_launch.service.experiments.searches.space import values
from plays import RATE, UNITS, searching, specified

WORD = {"values": ["a", "b"]}
POWER = {"type": "int", "min": 2, "max": 5, "base": 2}


def chosen(algorithm: str, seed: int, tried: list[RunRecord], number: int = 40) -> dict[str, Any]:
    spec = specified(algorithm, {"rate": RATE, "units": UNITS, "word": WORD, "power": POWER})
    return dict(values(spec.parameters, Chooser(spec, seed, tried).choose(number)))


@pytest.mark.parametrize("algorithm", ["random", "tpe", "bayesian"])
def test_a_choice_follows_from_what_is_known(algorithm: str) -> None:
    first = chosen(algorithm, 7, [])
    assert first == chosen(algorithm, 7, [])
    assert first != chosen(algorithm, 8, [])
    assert first != chosen(algorithm, 7, [], 41)
    assert 0.001 <= first["rate"] <= 0.1
    assert first["units"] in (16, 32, 64)
    assert first["word"] in ("a", "b")
    assert first["power"] in (4, 8, 16, 32)


@pytest.mark.parametrize("algorithm", ["tpe", "bayesian"])
def test_models_learn_from_the_trials_before(algorithm: str) -> None:
    """Choices come near to the best rate, 0.03; failures and trials that run do no harm."""
    spec = specified(algorithm, {"rate": RATE})
    tried: list[RunRecord] = []
    for number in range(40):
        point = Chooser(spec, 7, tried).choose(number)
        state, metric = TrialState.SUCCEEDED, abs(point["rate"] - 0.03)
        if number % 10 == 3:
            state, metric = TrialState.FAILED, None
        elif number == 38:
            state, metric = TrialState.RUNNING, None
        trial = Next(number, point, {}, 0, "").run(searching(), f"r{number}", 0.0)
        tried.append(replace(trial, state=state, metric=metric))
    last = [abs(trial.point["rate"] - 0.03) for trial in tried[-15:]]
    assert sum(last) / len(last) < 0.015  # at random it is 0.03
