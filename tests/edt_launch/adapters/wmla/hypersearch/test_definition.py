import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from pydantic import ValidationError

from edt_launch.adapters.wmla.hypersearch.definition import (
    RESOURCE_NAME,
    UNLIMITED,
    AlgoDef,
    Algorithm,
    parse,
)
from edt_launch.service.errors import InvalidError
from edt_launch.service.search_spec import Objective, SearchSpec
from searches import RATE, UNITS, budgets, content


def test_what_clients_send_is_read() -> None:
    param = {
        **RATE,
        "minIntVal": 0,
        "maxIntVal": 0,
        "discreteDbVal": [],
        "discreteIntVal": [],
        "discreateStrVal": [],
        "step": "0.002",
    }
    found = parse(json.dumps(content("Hyperband", param, **budgets(81))))
    assert found.algo_def.algorithm is Algorithm.HYPERBAND
    assert found.algo_def.objective is Objective.MINIMIZE
    assert found.algo_def.max_run_time == UNLIMITED
    assert found.algo_def.max_at_once == 2
    settings = found.algo_def.settings
    assert (settings["budget"], settings["max_budget"]) == ("epochs", 81)
    assert found.hyper_params[0].step == 0.002
    assert found.model_spec.sig_name == "dli-sig"
    spec = found.spec
    assert (spec.budget, spec.max_budget, spec.max_minutes, spec.max_trials) == ("epochs", 81, None, 4)
    assert (spec.parameters["rate"].min, spec.parameters["rate"].step) == (0.001, 0.002)
    assert SearchSpec.model_validate(spec.model_dump(mode="json")) == spec


def test_case_and_spelling_are_forgiven() -> None:
    given = content("grid", {**UNITS, "type": "discrete", "dataType": "int"}, objective="Maximize")
    given["algoDef"]["maxParallelJobNum"] = "3"
    del given["algoDef"]["maxParalleJobNum"]
    found = parse(json.dumps(given))
    assert found.algo_def.algorithm is Algorithm.GRID
    assert found.algo_def.max_at_once == 3


@pytest.mark.parametrize(
    "change, said",
    [
        ({"algorithm": "Magic"}, "algoDef.algorithm: 'Magic' is none of Random, Grid"),
        ({"objective": "improve"}, "algoDef.objective: 'improve' is none of minimize, maximize"),
        ({"objectiveMetric": ""}, "algoDef.objectiveMetric: ''"),
        ({"maxJobNum": 0}, "algoDef.maxJobNum: 0 is neither -1, no limit, nor 1 or more"),
        ({"maxJobNum": 10**6}, "algoDef.maxJobNum: 1000000: expected less than or equal to 10000"),
        ({"maxJobNum": "many"}, "algoDef.maxJobNum: 'many'"),
        ({"maxRunTime": -2}, "algoDef.maxRunTime: -2 is neither"),
        ({"maxParalleJobNum": 0}, "algoDef.maxParalleJobNum: 0: expected greater than or equal to 1"),
        ({"hyperbandEta": 1}, "algoDef.hyperbandEta: 1: expected greater than or equal to 1.5"),
        ({"algoParams": [{"name": "RandomSeed", "value": "x"}]}, "algoDef: algoParams: RandomSeed: 'x'"),
        ({"algoParams": [{"name": "WarmUp", "value": 0}]}, "WarmUp: 0 is not from 1 to 10000"),
        ({"algorithm": "Hyperband"}, "ResourceValue is missing"),
    ],
)
def test_a_mistake_in_the_algorithm_is_named(change: dict[str, Any], said: str) -> None:
    refused(content(**change), said)


@pytest.mark.parametrize(
    "change, said",
    [
        ({"type": "Interval"}, "hyperParams[0].type: 'Interval' is none of Range, Discrete"),
        ({"dataType": "complex"}, "hyperParams[0].dataType: 'complex' is none of int, double, str"),
        ({"dataType": "STR"}, "hyperParams[0]: a Range of str makes no sense"),
        ({"minDbVal": None}, "hyperParams[0]: minDbVal and maxDbVal are both needed"),
        ({"dataType": "INT"}, "hyperParams[0]: minIntVal and maxIntVal are both needed"),
        ({"minDbVal": 2}, "hyperParams[0]: minDbVal: 2.0 is above maxDbVal, 0.1"),
        ({"minDbVal": "small"}, "hyperParams[0].minDbVal: 'small'"),
        ({"minDbVal": float("nan")}, "hyperParams[0].minDbVal"),
        ({"maxDbVal": "inf"}, "hyperParams[0].maxDbVal"),
        ({"step": "nan"}, "hyperParams[0].step"),
        ({"power": "inf"}, "hyperParams[0].power"),
        ({"type": "Discrete", "discreteDbVal": [1, "1e999"]}, "hyperParams[0].discreteDbVal[1]"),
        (
            {"minDbVal": -1.7e308, "maxDbVal": 1.7e308},
            "maxDbVal: 1.7e+308 is too far above minDbVal, -1.7e+308",
        ),
        ({"minDbVal": 0, "maxDbVal": 1e300, "step": 1e-300}, "maxDbVal: 1e+300 is too far above"),
        ({"step": -1}, "hyperParams[0].step: -1: expected greater than 0"),
        ({"power": 10, "maxDbVal": 400}, "hyperParams[0]: power: 10.0 to the power of 400.0 is above"),
        (
            {"power": 10, "minDbVal": -400, "maxDbVal": -350},
            "hyperParams[0]: power: 10.0 to the power of -400.0 is below 1e-300",
        ),
        ({"power": 0.1, "maxDbVal": 400}, "hyperParams[0]: power: 0.1 to the power of 400.0 is below"),
        ({"type": "Discrete"}, "hyperParams[0]: discreteDbVal is empty"),
        ({"name": ""}, "hyperParams[0].name: ''"),
        ({"name": "a\nb"}, "hyperParams[0].name"),
        ({"dataType": "INT", "minIntVal": 1, "maxIntVal": 9, "step": 0.5}, "step: 0.5 is no integer"),
    ],
)
def test_a_mistake_in_a_hyperparameter_is_named(change: dict[str, Any], said: str) -> None:
    refused(content("Random", {**RATE, **change}), said)


@pytest.mark.parametrize(
    "text, said",
    [
        ("{", "data is no JSON"),
        ("[1]", "data is no JSON object"),
        ("[" * 100_000, "data is no JSON"),
        (json.dumps(content() | {"hyperParams": []}), "Random needs hyperParams"),
        (json.dumps(content("ExperimentGridSearch")), "ExperimentGridSearch needs experiments"),
        (json.dumps(content("Random", RATE, RATE)), "hyperParams: 'rate' is there twice"),
        (json.dumps(content("Grid", RATE)), "hyperParams[0].step is missing"),
        (json.dumps(content() | {"hpoName": "../x"}), "hpoName: '../x'"),
        (json.dumps(content() | {"modelSpec": {}}), "modelSpec.args: Field required"),
    ],
)
def test_a_mistake_in_the_whole_is_named(text: str, said: str) -> None:
    with pytest.raises(InvalidError) as caught:
        parse(text)
    assert said in caught.value.detail


def test_the_resource_is_no_hyperparameter() -> None:
    refused(
        content("Hyperband", {**RATE, "name": "epochs"}, **budgets(9)), "'epochs' is Hyperband's resource"
    )


@pytest.mark.parametrize(
    "kind, value, said",
    [
        ("double", "fast", "'fast' is no double"),
        ("double", "nan", "nan is no finite number"),
        ("double", "-1e999", "-1e999 is no finite number"),
        ("double", float("inf"), "inf is no finite number"),
        ("int", "9" * 400, "is not from -9007199254740992 to 9007199254740992"),
    ],
)
def test_values_of_experiments_are_of_their_type(kind: str, value: Any, said: str) -> None:
    one = {"name": "rate", "dataType": kind, "fixedVal": value}
    whole = content("ExperimentGridSearch") | {
        "hyperParams": [],
        "experiments": [{"id": 1, "hyperParams": [one]}],
    }
    refused(whole, "experiments[0].hyperParams[0]: fixedVal: ", said)


json_values = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    some.sampled_from(["modelSpec", "algoDef", "hyperParams", "experiments", "hpoName"]),
    some.sampled_from(["", "args", "maxJobNum", "algoParams", "algorithm", "objective"]),
    json_values,
)
def test_whatever_is_sent_is_taken_or_refused(part: str, field: str, value: Any) -> None:
    whole = content()
    if field and isinstance(whole.get(part), dict):
        whole[part][field] = value
    else:
        whole[part] = value
    with contextlib.suppress(InvalidError):
        _ = parse(json.dumps(whole)).spec


def refused(given: dict[str, Any], *said: str) -> None:
    with pytest.raises(InvalidError) as caught:
        parse(json.dumps(given))
    assert all(part in caught.value.detail for part in said)


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
