"""What a search chooses: hyperparameters, each from a range or from values, or a user's own choices."""

import math
from enum import StrEnum
from typing import Annotated, Self

from pydantic import AliasChoices, BeforeValidator, ConfigDict, Field, model_validator

from edt_launch.adapters.wmla.hypersearch.fields import EXACT, Fields, Int, Value, Word, one_of

MOST_PARAMETERS = 256
MOST_VALUES = 10_000
"""Values that a discrete hyperparameter may have."""

LARGEST = 1e300
"""Of the powers in a range; the smallest is its reciprocal."""


class DataType(StrEnum):
    """What a hyperparameter's values are."""

    INT = "int"
    DOUBLE = "double"
    STR = "str"


class Kind(StrEnum):
    """What a hyperparameter is chosen from."""

    RANGE = "Range"
    DISCRETE = "Discrete"


class HyperParam(Fields):
    """What one hyperparameter is chosen from."""

    name: Word
    kind: Annotated[Kind, one_of(Kind), Field(alias="type")]
    data_type: Annotated[DataType, one_of(DataType)]
    min_db_val: float | None = None
    max_db_val: float | None = None
    min_int_val: Int | None = None
    max_int_val: Int | None = None
    discrete_db_val: Annotated[list[float] | None, Field(max_length=MOST_VALUES)] = None
    discrete_int_val: Annotated[list[Int] | None, Field(max_length=MOST_VALUES)] = None
    discrete_str_val: Annotated[
        list[Value] | None,
        Field(
            max_length=MOST_VALUES,
            validation_alias=AliasChoices("discreateStrVal", "discreteStrVal"),
            serialization_alias="discreateStrVal",
        ),
    ] = None
    power: Annotated[float | None, Field(gt=0, le=1e6), BeforeValidator(lambda given: given or None)] = None
    step: Annotated[float | None, Field(gt=0), BeforeValidator(lambda given: given or None)] = None

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """The least and the greatest value of a range, or exponent, if there is `power`."""
        if self.data_type is DataType.INT:
            return self.min_int_val, self.max_int_val
        return self.min_db_val, self.max_db_val

    @property
    def choices(self) -> tuple[float | str, ...]:
        """The values of a discrete one."""
        found = {
            DataType.INT: self.discrete_int_val,
            DataType.DOUBLE: self.discrete_db_val,
            DataType.STR: self.discrete_str_val,
        }[self.data_type]
        return tuple(dict.fromkeys(found or ()))

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.kind is Kind.DISCRETE:
            if not self.choices:
                field = {"int": "discreteIntVal", "double": "discreteDbVal", "str": "discreateStrVal"}
                raise ValueError(f"{field[self.data_type]} is empty: give the values of {self.name!r}")
            return self
        if self.data_type is DataType.STR:
            raise ValueError("a Range of str makes no sense: use Discrete with discreateStrVal")
        short = "Int" if self.data_type is DataType.INT else "Db"
        least, most = self.bounds
        if least is None or most is None:
            raise ValueError(f"min{short}Val and max{short}Val are both needed for a Range")
        if least > most:
            raise ValueError(f"min{short}Val: {least} is above max{short}Val, {most}")
        if not math.isfinite((most - least) / (self.step or 1)):
            raise ValueError(
                f"max{short}Val: {most} is too far above min{short}Val, {least}: narrow the range"
            )
        self._check_power(least, most)
        return self

    def _check_power(self, *bounds: float) -> None:
        if self.data_type is DataType.INT and self.step is not None and self.step != int(self.step):
            raise ValueError(f"step: {self.step} is no integer, as a Range of int needs it")
        if self.power is None:
            return
        largest = EXACT if self.data_type is DataType.INT else LARGEST
        for exponent in bounds:
            try:
                value = self.power**exponent
            except OverflowError:
                value = math.inf
            if not 1 / LARGEST <= value <= largest:
                limit = f"above {largest:g}" if value > largest else f"below {1 / LARGEST:g}"
                raise ValueError(f"power: {self.power} to the power of {exponent} is {limit}")


class FixedParam(Fields):
    """A hyperparameter of an experiment that the user has chosen."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    name: Word
    data_type: Annotated[DataType, one_of(DataType)]
    fixed_val: Value

    @property
    def value(self) -> float | str:
        """The value.

        Raises:
            ValueError: it is not of its type, or too large for it.
        """
        kinds = {DataType.INT: int, DataType.DOUBLE: float, DataType.STR: str}
        try:
            found: float | str = kinds[self.data_type](self.fixed_val)
        except ValueError:
            raise ValueError(f"fixedVal: {self.fixed_val!r:.80} is no {self.data_type}") from None
        if isinstance(found, int) and abs(found) > EXACT:
            raise ValueError(f"fixedVal: {self.fixed_val:.80} is not from {-EXACT} to {EXACT}")
        if isinstance(found, float) and not math.isfinite(found):
            raise ValueError(f"fixedVal: {self.fixed_val:.80} is no finite number")
        return found

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        _ = self.value
        return self


class Experiment(Fields):
    """A configuration that the user has chosen."""

    id: Int = 0
    hyper_params: Annotated[
        list[FixedParam],
        Field(
            min_length=1,
            max_length=MOST_PARAMETERS,
            validation_alias=AliasChoices("hyperParams", "fixedHyperParams"),
            serialization_alias="hyperParams",
        ),
    ]
