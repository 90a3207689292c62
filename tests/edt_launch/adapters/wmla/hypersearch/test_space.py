from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from edt_launch.adapters.wmla.hypersearch.space import axes, grid_point, size, values
from searches import RATE, UNITS, defined


def all_values(*params: dict[str, Any]) -> list[dict[str, Any]]:
    space = axes(defined("Grid", *params))
    return [dict(values(space, grid_point(space, number))) for number in range(size(space))]


def test_a_grid_has_every_combination_once() -> None:
    found = all_values({**RATE, "minDbVal": 0.1, "maxDbVal": 0.3, "step": "0.1"}, UNITS)
    assert found[:4] == [
        {"rate": 0.1, "units": 16},
        {"rate": 0.1, "units": 32},
        {"rate": 0.1, "units": 64},
        {"rate": 0.2, "units": 16},
    ]
    assert len(found) == len({tuple(one.values()) for one in found}) == 9
    assert found[-1] == {"rate": 0.3, "units": 64}


@pytest.mark.parametrize(
    "param, expected",
    [
        ({"dataType": "INT", "minIntVal": 1, "maxIntVal": 9, "step": 4}, [1, 5, 9]),
        ({"dataType": "INT", "minIntVal": 3, "maxIntVal": 5}, [3, 4, 5]),
        ({"dataType": "INT", "minIntVal": 6, "maxIntVal": 8, "power": 2}, [64, 128, 256]),
        ({"minDbVal": -3, "maxDbVal": -1, "step": 1, "power": 10}, [0.001, 0.01, 0.1]),
        ({"minDbVal": 0.01, "maxDbVal": 0.039, "step": 0.01}, [0.01, 0.02, 0.03]),
        ({"type": "Discrete", "dataType": "STR", "discreateStrVal": ["b", "a", "b"]}, ["b", "a"]),
        ({"type": "Discrete", "discreteDbVal": [0.5, 0.25]}, [0.5, 0.25]),
    ],
)
def test_values_are_those_that_the_user_expects(param: dict[str, Any], expected: list[Any]) -> None:
    found = [one["rate"] for one in all_values({**RATE, **param})]
    assert found == pytest.approx(expected) if isinstance(expected[0], float) else found == expected
    assert {type(value) for value in found} == {type(expected[0])}


@given(some.floats(0, 1e6), some.floats(1e-3, 1e3), some.integers(0, 1000))
def test_steps_stay_inside_their_range(low: float, step: float, count: int) -> None:
    high = low + step * count
    (axis,) = axes(defined("Grid", {**RATE, "minDbVal": low, "maxDbVal": high, "step": step}))
    assert axis.count is not None
    assert low <= float(axis.value(axis.count - 1)) <= high
    assert abs(axis.count - 1 - count) <= 1
