from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from edt_launch.service.experiments.searches.space import count, grid_point, size, value, values
from edt_launch.service.experiments.searches.spec import Parameter
from plays import UNITS


def all_values(**params: dict[str, Any]) -> list[dict[str, Any]]:
    space = {name: Parameter.model_validate(param) for name, param in params.items()}
    return [dict(values(space, grid_point(space, number))) for number in range(size(space))]


def test_a_grid_has_every_combination_once() -> None:
    found = all_values(rate={"min": 0.1, "max": 0.3, "step": 0.1}, units=UNITS)
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
        ({"type": "int", "min": 1, "max": 9, "step": 4}, [1, 5, 9]),
        ({"type": "int", "min": 3, "max": 5}, [3, 4, 5]),
        ({"type": "int", "min": 6, "max": 8, "base": 2}, [64, 128, 256]),
        ({"min": -3, "max": -1, "step": 1, "base": 10}, [0.001, 0.01, 0.1]),
        ({"min": 0.01, "max": 0.039, "step": 0.01}, [0.01, 0.02, 0.03]),
        ({"values": ["b", "a"]}, ["b", "a"]),
        ({"values": [0.5, 0.25]}, [0.5, 0.25]),
    ],
)
def test_values_are_those_that_the_user_expects(param: dict[str, Any], expected: list[Any]) -> None:
    found = [one["rate"] for one in all_values(rate=param)]
    assert found == pytest.approx(expected) if isinstance(expected[0], float) else found == expected
    assert {type(value) for value in found} == {type(expected[0])}


@given(some.floats(0, 1e6), some.floats(1e-3, 1e3), some.integers(0, 1000))
def test_steps_stay_inside_their_range(low: float, step: float, steps: int) -> None:
    high = low + step * steps
    axis = Parameter(min=low, max=high, step=step)
    found = count(axis)
    assert found is not None
    assert low <= float(value(axis, found - 1)) <= high
    assert abs(found - 1 - steps) <= 1
