from typing import Any

import pytest

from edt_launch.service.experiments.comparison import metrics, objective_of, parameters
from edt_launch.service.experiments.searches.spec import Objective

SPEC: dict[str, Any] = {"command": ["python", "train.py"], "min": 1, "max": None, "environment": {}}


@pytest.mark.parametrize("name", ["loss", "val_loss", "trainLoss", "error-rate", "test/mse", "WER"])
def test_losses_are_better_the_lower_they_are(name: str) -> None:
    assert objective_of(name) is Objective.MINIMIZE


@pytest.mark.parametrize("name", ["accuracy", "glossary", "f1", "reward", "terror", ""])
def test_others_are_better_the_higher_they_are(name: str) -> None:
    assert objective_of(name) is Objective.MAXIMIZE


def test_the_best_run_is_found_by_each_value() -> None:
    runs = [{"loss": 0.5, "accuracy": 0.8}, {"loss": 0.4, "total_steps": 9.0}, {"accuracy": 0.9}, {}]
    assert metrics(runs) == [("loss", Objective.MINIMIZE, 1), ("accuracy", Objective.MAXIMIZE, 2)]
    chosen = metrics(runs, "accuracy", Objective.MINIMIZE)
    assert chosen == [("accuracy", Objective.MINIMIZE, 0), ("loss", Objective.MINIMIZE, 1)]
    assert metrics([]) == []


def test_secrets_are_not_compared() -> None:
    found = parameters("net", "2", SPEC | {"environment": {"API_TOKEN": "s3cr3t"}})
    assert found["$API_TOKEN"] == "…"


def test_options_of_a_command_are_parameters() -> None:
    words = ["python", "train.py", "--rate", "-0.1", "--fast", "--seed=3", "data", "--tag", "a", "--tag", "b"]
    assert parameters("net", "2", SPEC | {"command": words, "environment": {"X": "y"}, "max": 4}) == {
        "training definition": "net",
        "code": "2",
        "$X": "y",
        "nodes": "1 to 4",
        "word 1": "python",
        "word 2": "train.py",
        "word 3": "data",
        "--rate": "-0.1",
        "--fast": "yes",
        "--seed": "3",
        "--tag": "a b",
    }
