"""The space that a search goes through: each parameter is an axis.

A point has a coordinate for each axis: an index where the axis has countable values, else a number. Steps
are counted in decimal numbers, so that values are those that the user expects: 0.3, not 0.30000000000000004.
"""

import math
from collections.abc import Mapping
from decimal import Decimal

from edt_launch.service.experiments.searches.spec import Parameter, Values

Point = Mapping[str, float]
Space = Mapping[str, Parameter]


def count(axis: Parameter) -> int | None:
    """How many values a parameter has; None if it is continuous."""
    if axis.values:
        return len(axis.values)
    step = _step(axis)
    return None if step is None else int((_decimal(axis.max) - _decimal(axis.min)) / step) + 1


def value(axis: Parameter, at: float) -> float | str:
    """The value at a coordinate."""
    if axis.values:
        return axis.values[int(at)]
    step = _step(axis)
    exact = Decimal(at) if step is None else _decimal(axis.min) + int(at) * step
    number = float(exact) if axis.base is None else axis.base ** float(exact)
    return round(number) if axis.type == "int" else number


def size(space: Space) -> int:
    """How many points a space of countable axes has."""
    return math.prod(count(axis) or 1 for axis in space.values())


def grid_point(space: Space, number: int) -> Point:
    """One of all points of a space of countable axes; the last axis changes first."""
    point = {}
    for name, axis in reversed(list(space.items())):
        number, point[name] = divmod(number, count(axis) or 1)
    return {name: point[name] for name in space}


def values(space: Space, point: Point) -> Values:
    """A point's values, as a trial reads them."""
    return {name: value(axis, point[name]) for name, axis in space.items()}


def _step(axis: Parameter) -> Decimal | None:
    if axis.step is None:
        return Decimal(1) if axis.type == "int" else None
    return _decimal(axis.step)


def _decimal(number: float | None) -> Decimal:
    return Decimal(str(number))
