from typing import Any

import pytest
from pydantic import ValidationError

from edt_launch.adapters.wmla.hypersearch.hyperparameters import (
    FixedParam,
    HyperParam,
)
from edt_launch.service.experiments.searches.spec import EXACT
from searches import RATE


def fixed(kind: str, value: object) -> FixedParam:
    return FixedParam.model_validate({"name": "x", "dataType": kind, "fixedVal": value})


@pytest.mark.parametrize(
    "kind, given, expected",
    [("int", "3", 3), ("int", 3, 3), ("double", "1e-3", 0.001), ("double", 2, 2.0), ("str", 3, "3")],
)
def test_a_fixed_value_is_of_its_type(kind: str, given: object, expected: object) -> None:
    found = fixed(kind, given).value
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    "kind, given, said",
    [
        ("int", "3.5", "'3.5' is no int"),
        ("int", str(EXACT + 1), "is not from"),
        ("double", "fast", "'fast' is no double"),
        ("double", "-inf", "is no finite number"),
    ],
)
def test_a_fixed_value_that_is_not_is_refused(kind: str, given: object, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        fixed(kind, given)


@pytest.mark.parametrize(
    "change, said",
    [
        ({"power": 10, "minDbVal": -301}, "10.0 to the power of -301.0 is below 1e-300"),
        ({"type": "Discrete", "discreteDbVal": [1, "1e999"]}, "finite number"),
        ({"minDbVal": 0, "maxDbVal": 1e300, "step": 1e-300}, r"maxDbVal: 1e.300 is too far above"),
        ({"minDbVal": 1}, "minDbVal: 1.0 is above maxDbVal, 0.1"),
    ],
)
def test_what_does_not_fit_together_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        HyperParam.model_validate(RATE | change)
