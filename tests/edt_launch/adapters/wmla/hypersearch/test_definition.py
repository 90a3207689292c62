import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from edt_launch.adapters.wmla.hypersearch.definition import (
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
        ({"maxJobNum": 0}, "algoDef.maxJobNum: 0 is neither -1, no limit, nor 1 or more"),
        ({"maxParalleJobNum": 0}, "algoDef.maxParalleJobNum: 0: expected greater than or equal to 1"),
        ({"hyperbandEta": 1}, "algoDef.hyperbandEta: 1: expected greater than or equal to 1.5"),
        ({"algorithm": "Hyperband"}, "ResourceValue is missing"),
        ({"maxRunTime": 10**9}, "algoDef.maxRunTime: 1000000000"),
    ],
)
def test_a_mistake_in_the_algorithm_is_named(change: dict[str, Any], said: str) -> None:
    refused(content(**change), said)


@pytest.mark.parametrize(
    "text, said",
    [
        ("{", "data is no JSON"),
        ("[" * 100_000, "data is no JSON"),
        (json.dumps(content() | {"hyperParams": []}), "Random needs hyperParams"),
        (json.dumps(content("Random", RATE, RATE)), "hyperParams: 'rate' is there twice"),
        (json.dumps(content("Grid", RATE)), "hyperParams[0].step is missing"),
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


def test_settings_are_found_by_name_in_any_case_numbers_or_texts() -> None:
    found = algo(params={"randomseed": 7, "WARMUP": "3", "eicandidate": 5.0, "Eta": "2"}).settings
    assert found.items() >= {"seed": 7, "warm_up": 3, "candidates": 5, "eta": 2.0}.items()
