import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from edt_launch.adapters.wmla.hypersearch.definition import (
    UNLIMITED,
    Algorithm,
    parse,
)
from edt_launch.service.errors import InvalidError
from edt_launch.service.experiments.searches.spec import Objective, SearchSpec
from searches import RATE, budgets, content


def test_what_clients_send_is_read() -> None:
    unused = {
        "minIntVal": 0,
        "maxIntVal": 0,
        "discreteDbVal": [],
        "discreteIntVal": [],
        "discreateStrVal": [],
    }
    param = {**RATE, **unused, "step": "0.002"}
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


@pytest.mark.parametrize(
    "text, said",
    [
        ("[" * 100_000, "data is no JSON"),
        (json.dumps(content("Magic")), "algoDef.algorithm: 'Magic' is none of Random, Grid"),
        (json.dumps(content(maxJobNum=0)), "algoDef.maxJobNum: 0 is neither -1, no limit, nor 1 or more"),
        (json.dumps(content("Random", RATE, RATE)), "hyperParams: 'rate' is there twice"),
        (json.dumps(content("Grid", RATE)), "hyperParams[0].step is missing"),
    ],
)
def test_a_mistake_is_named(text: str, said: str) -> None:
    with pytest.raises(InvalidError) as caught:
        parse(text)
    assert said in caught.value.detail


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
