from typing import Any

import pytest
from pydantic import ValidationError

from edt_launch.adapters.wmla.hypersearch.definition import RESOURCE_NAME, AlgoDef
from edt_launch.service.experiment_spec import Objective


def algo(algorithm: str = "Tpe", params: dict[str, Any] | None = None, **fields: Any) -> AlgoDef:
    named = [{"name": name, "value": value} for name, value in (params or {}).items()]
    given = {"algorithm": algorithm, "objectiveMetric": "loss", "objective": "minimize", "algoParams": named}
    return AlgoDef.model_validate(given | fields)


def test_settings_have_defaults() -> None:
    found = algo()
    assert found.settings == {
        "seed": None, "warm_up": 10, "candidates": 24, "eta": 3.0, "budget": RESOURCE_NAME, "max_budget": 1,
    }  # fmt: skip
    assert (found.max_run_time, found.max_job_num, found.max_at_once) == (-1, -1, 1)


def test_settings_are_found_by_name_in_any_case_numbers_or_texts() -> None:
    found = algo(params={"randomseed": 7, "WARMUP": "3", "eicandidate": 5.0, "Eta": "2"}).settings
    assert found.items() >= {"seed": 7, "warm_up": 3, "candidates": 5, "eta": 2.0}.items()


def test_of_two_names_for_one_setting_the_first_one_counts() -> None:
    assert algo(params={"InitPoints": 4}).settings["warm_up"] == 4
    assert algo(params={"InitPoints": 4, "WarmUp": 6}).settings["warm_up"] == 6
    assert algo(hyperbandEta=4).settings["eta"] == 4.0
    assert algo(hyperbandEta=4, params={"eta": 5}).settings["eta"] == 5.0


@pytest.mark.parametrize("given, expected", [(-1, None), (0, 0), (2**32 - 1, 2**32 - 1)])
def test_a_seed_of_minus_one_is_none(given: int, expected: int | None) -> None:
    assert algo(params={"RandomSeed": given}).settings["seed"] == expected


@pytest.mark.parametrize(
    "params, said",
    [
        ({"RandomSeed": 2**32}, "RandomSeed: 4294967296 is not from -1 to"),
        ({"RandomSeed": -2}, "RandomSeed: -2 is not from -1 to"),
        ({"WarmUp": 0}, "WarmUp: 0 is not from 1 to"),
        ({"EICandidate": "many"}, "EICandidate: 'many' is no number"),
        ({"EICandidate": "nan"}, "EICandidate: nan is not from 1 to"),
        ({"eta": 1}, "eta: 1 is not from 1.5 to"),
        ({"ResourceValue": "inf"}, "ResourceValue: inf is not from 1 to"),
    ],
)
def test_what_is_wrong_with_a_setting_is_said_at_once(params: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        algo(params=params)


def test_hyperband_needs_a_budget() -> None:
    with pytest.raises(ValidationError, match="ResourceValue is missing"):
        algo("Hyperband")
    params = {"ResourceName": "epochs", "ResourceValue": 9}
    settings = algo("Hyperband", params=params).settings
    assert (settings["budget"], settings["max_budget"]) == ("epochs", 9)


@pytest.mark.parametrize("limit", ["maxRunTime", "maxJobNum"])
def test_a_limit_is_one_at_least_or_none(limit: str) -> None:
    for good in (-1, 1, "5"):
        algo(**{limit: good})
    for bad in (0, -2, 10**9):
        with pytest.raises(ValidationError):
            algo(**{limit: bad})


def test_the_better_a_metric_the_smaller_it_is_with_its_sign() -> None:
    assert min((1.0, 2.0), key=lambda metric: Objective.MAXIMIZE.sign * metric) == 2.0
    assert min((1.0, 2.0), key=lambda metric: Objective.MINIMIZE.sign * metric) == 1.0
