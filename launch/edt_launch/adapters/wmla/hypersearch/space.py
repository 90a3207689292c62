"""The space that a search goes through: each hyperparameter is an axis.

A point has a coordinate for each axis: an index where the axis has countable values, else a number. Steps
are counted in decimal numbers, so that values are those that the user expects: 0.3, not 0.30000000000000004.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from edt_launch.adapters.wmla.hypersearch.definition import Definition
from edt_launch.adapters.wmla.hypersearch.hyperparameters import DataType, HyperParam, Kind

Point = Mapping[str, float]
Values = Mapping[str, float | str]


@dataclass(frozen=True)
class Axis:
    """A hyperparameter.

    Attributes:
        name: what `config.json` calls it.
        data_type: of its values.
        low, high: of a range, or its exponents.
        step: between two values of a range; None if it is continuous.
        power: what the range's numbers are exponents of, if they are.
        choices: all values; empty for a range.
    """

    name: str
    data_type: DataType
    low: Decimal = Decimal(0)
    high: Decimal = Decimal(0)
    step: Decimal | None = None
    power: float | None = None
    choices: tuple[float | str, ...] = ()

    @property
    def count(self) -> int | None:
        """How many values there are; None if it is continuous."""
        if self.choices:
            return len(self.choices)
        return None if self.step is None else int((self.high - self.low) / self.step) + 1

    def value(self, at: float) -> float | str:
        """The value at a coordinate."""
        if self.choices:
            return self.choices[int(at)]
        exact = Decimal(at) if self.step is None else self.low + int(at) * self.step
        number = float(exact) if self.power is None else self.power ** float(exact)
        return round(number) if self.data_type is DataType.INT else number


def axes(definition: Definition) -> tuple[Axis, ...]:
    """The axes of a search's space, in the user's order."""
    return tuple(map(_axis, definition.hyper_params))


def size(space: Sequence[Axis]) -> int:
    """How many points a space of countable axes has."""
    return math.prod(axis.count or 1 for axis in space)


def grid_point(space: Sequence[Axis], number: int) -> Point:
    """One of all points of a space of countable axes; the last axis changes first."""
    point = {}
    for axis in reversed(space):
        number, point[axis.name] = divmod(number, axis.count or 1)
    return {axis.name: point[axis.name] for axis in space}


def values(space: Sequence[Axis], point: Point) -> Values:
    """A point's values, as a trial reads them."""
    return {axis.name: axis.value(point[axis.name]) for axis in space}


def _axis(param: HyperParam) -> Axis:
    if param.kind is Kind.DISCRETE:
        return Axis(param.name, param.data_type, choices=param.choices)
    low, high = (Decimal(str(bound)) for bound in param.bounds)
    default = Decimal(1) if param.data_type is DataType.INT else None
    step = default if param.step is None else Decimal(str(param.step))
    return Axis(param.name, param.data_type, low, high, step, param.power)
