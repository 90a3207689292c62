"""What a user says of a search: a space of parameters, how to choose from it, how far to go."""

import math
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from edt_launch.service.experiments.records import RunRecord
from edt_launch.service.names import PLAIN, TEXT

EXACT = 2**53
"""Integers up to this are the same in every client's arithmetic."""

LARGEST = 1e300
"""Of the powers in a range; the smallest is its reciprocal."""

MAX_TRIALS = 10_000
MAX_PARALLEL = 1_000
MAX_MINUTES = 10**7
MAX_BUDGET = 10**9
MAX_PARAMETERS = 256
MAX_VALUES = 10_000

Word = Annotated[str, StringConstraints(pattern=f"^{PLAIN}$", min_length=1, max_length=128)]
Int = Annotated[int, Field(strict=True, ge=-EXACT, le=EXACT)]


def _expected(said: str) -> WrapValidator:
    """Have one thing said of what fits none of several types, instead of one for each."""

    def check(value: object, handler: ValidatorFunctionWrapHandler) -> object:
        try:
            return handler(value)
        except ValidationError:
            raise PydanticCustomError("unfit", "expected {said}", {"said": said}) from None

    return WrapValidator(check)


NUMBERS = "a number, from -2**53 to 2**53 if it is an integer"
Number = Annotated[Int | float, _expected(NUMBERS)]
Value = Annotated[
    Int
    | Annotated[float, Field(strict=True)]
    | Annotated[str, StringConstraints(strict=True, pattern=f"^{TEXT}$", max_length=4096)],
    _expected(f"{NUMBERS}, or a text of 4096 characters at most"),
]
"""Of a parameter."""


class Algorithm(StrEnum):
    """How configurations are chosen."""

    RANDOM = "random"
    GRID = "grid"
    LIST = "list"
    HYPERBAND = "hyperband"
    TPE = "tpe"
    BAYESIAN = "bayesian"


class Objective(StrEnum):
    """Which values of the metric are better."""

    MINIMIZE = "minimize"
    MAXIMIZE = "maximize"

    @property
    def sign(self) -> int:
        """A metric times this is the smaller, the better it is."""
        return 1 if self is Objective.MINIMIZE else -1


class _Fields(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Parameter(_Fields):
    """What one parameter is chosen from: values, or a range."""

    values: Annotated[tuple[Value, ...], Field(max_length=MAX_VALUES)] = ()
    type: Annotated[Literal["float", "int"], Field(description="Of a range's values.")] = "float"
    min: Annotated[Number | None, Field(description="Of a range: its least value, or exponent.")] = None
    max: Annotated[Number | None, Field(description="Its greatest value, or exponent.")] = None
    step: Annotated[float | None, Field(gt=0, description="Between two values; 1 for `int`.")] = None
    base: Annotated[
        float | None, Field(gt=0, le=1e6, description="The range is one of exponents of this number.")
    ] = None

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        least, most = self.min, self.max
        if self.values:
            if (least, most, self.step, self.base) != (None, None, None, None):
                raise ValueError("values and a range are both given: give one of them")
            return self
        if least is None or most is None:
            raise ValueError("give values, or min and max of a range")
        is_int = self.type == "int"
        if is_int and not all(isinstance(bound, int) and not (self.step or 1) % 1 for bound in (least, most)):
            raise ValueError(f"min, max and step of an int are integers: {least}, {most}, {self.step or 1}")
        check_range(least, most, self.step, self.base, is_int)
        return self


def check_range(
    least: float,
    most: float,
    step: float | None,
    base: float | None,
    is_int: bool,
    names: tuple[str, str, str] = ("min", "max", "base"),
) -> None:
    """Raise `ValueError` unless a range (as in `Parameter`) has values, and all of them are numbers.

    `names` are what the user calls `least`, `most` and `base`.
    """
    low, high, power = names
    if least > most:
        raise ValueError(f"{low}: {least} is above {high}, {most}")
    if not math.isfinite((most - least) / (step or 1)):
        raise ValueError(f"{high}: {most} is too far above {low}, {least}: narrow the range")
    if base is None:
        return
    largest = EXACT if is_int else LARGEST
    for exponent in (least, most):
        try:
            value = base**exponent
        except OverflowError:
            value = math.inf
        if not 1 / LARGEST <= value <= largest:
            limit = f"above {largest:g}" if value > largest else f"below {1 / LARGEST:g}"
            raise ValueError(f"{power}: {base} to the power of {exponent} is {limit}")


class SearchSpec(_Fields):
    """What is searched how."""

    metric: Annotated[Word, Field(description="Name of the value by which trials are compared.")]
    objective: Objective = Objective.MINIMIZE
    algorithm: Algorithm = Algorithm.RANDOM
    parameters: Annotated[
        dict[Word, Parameter], Field(max_length=MAX_PARAMETERS, description="What each is chosen from.")
    ] = {}
    configurations: Annotated[
        tuple[Annotated[dict[Word, Value], Field(min_length=1, max_length=MAX_PARAMETERS)], ...],
        Field(max_length=MAX_TRIALS, description="Instead of `parameters`, for `list`."),
    ] = ()
    max_trials: Annotated[int | None, Field(ge=1, le=MAX_TRIALS)] = None
    max_parallel: Annotated[
        int, Field(ge=1, le=MAX_PARALLEL, description="Trials that are queued or run at the same time.")
    ] = 1
    max_minutes: Annotated[
        int | None, Field(ge=1, le=MAX_MINUTES, description="Then trials that run are stopped.")
    ] = None
    seed: Annotated[int | None, Field(ge=0, lt=2**32, description="Of all that is random.")] = None
    warm_up: Annotated[
        int, Field(ge=1, le=MAX_TRIALS, description="Random trials before `tpe` and `bayesian` learn.")
    ] = 10
    candidates: Annotated[
        int, Field(ge=1, le=10_000, description="Of which `tpe` and `bayesian` take the best one.")
    ] = 24
    eta: Annotated[
        float, Field(ge=1.5, le=1000, description="Of how many configurations `hyperband` keeps one.")
    ] = 3.0
    budget: Annotated[
        str,
        StringConstraints(pattern=f"^{TEXT}$", min_length=1, max_length=4096),
        Field(description="Parameter that tells a trial of `hyperband` its budget."),
    ] = "budget"
    max_budget: Annotated[
        int | None, Field(ge=1, le=MAX_BUDGET, description="The greatest budget; for `hyperband`.")
    ] = None

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        given, other = ("configurations", "parameters")
        if self.algorithm is not Algorithm.LIST:
            given, other = other, given
        if not getattr(self, given) or getattr(self, other):
            raise ValueError(f"{self.algorithm} needs {given}, and no {other}")
        if self.algorithm is Algorithm.HYPERBAND:
            if self.max_budget is None:
                raise ValueError("max_budget is missing: the greatest budget of a trial of hyperband")
            if self.budget in self.parameters:
                raise ValueError(f"parameters: {self.budget!r} is hyperband's budget: give another budget")
        if self.algorithm is Algorithm.GRID:
            for name, one in self.parameters.items():
                if not one.values and one.type == "float" and one.step is None:
                    raise ValueError(f"parameters: {name}: step is missing: grid cannot try all of a range")
        return self

    @property
    def most(self) -> int:
        """Trials that the user allows."""
        return MAX_TRIALS if self.max_trials is None else self.max_trials


def ranking(objective: Objective, trials: Iterable[RunRecord]) -> list[RunRecord]:
    """The trials that have a metric, the best first; of equal ones the first."""
    with_metric = [(trial.metric, trial) for trial in trials if trial.metric is not None]
    return [trial for _, trial in sorted(with_metric, key=lambda it: (objective.sign * it[0], it[1].place))]


Values = Mapping[str, float | str]
"""Parameters of a trial."""
