"""What a search chooses: hyperparameters, each from a range or from values, or a user's own choices."""

import math
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)
from pydantic.alias_generators import to_camel

from edt_launch.service.experiments.searches.spec import (
    EXACT,
    MAX_PARAMETERS,
    MAX_VALUES,
    Parameter,
    Word,
    check_range,
)
from edt_launch.service.names import TEXT

SYNONYMS = {"gridsearch": "Grid", "integer": "int", "float": "double", "string": "str"}

Int = Annotated[int, Field(ge=-EXACT, le=EXACT)]
Value = Annotated[str, StringConstraints(pattern=f"^{TEXT}$", max_length=4096)]


class Fields(BaseModel):
    """An object of the definition."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, allow_inf_nan=False
    )


def one_of(kind: type[StrEnum]) -> BeforeValidator:
    """Finds a member whatever the case; says which there are if there is none."""

    def find(given: object) -> object:
        text = str(given).lower()
        names = (text, SYNONYMS.get(text, text).lower())
        for member in kind:
            if member.lower() in names:
                return member
        raise ValueError(f"{str(given)!r:.80} is none of {', '.join(kind)}")

    return BeforeValidator(find)


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
    discrete_db_val: Annotated[list[float] | None, Field(max_length=MAX_VALUES)] = None
    discrete_int_val: Annotated[list[Int] | None, Field(max_length=MAX_VALUES)] = None
    discrete_str_val: Annotated[
        list[Value] | None,
        Field(max_length=MAX_VALUES, validation_alias=AliasChoices("discreateStrVal", "discreteStrVal")),
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
        values = {
            DataType.INT: self.discrete_int_val,
            DataType.DOUBLE: self.discrete_db_val,
            DataType.STR: self.discrete_str_val,
        }[self.data_type]
        return tuple(dict.fromkeys(values or ()))

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.kind is Kind.DISCRETE:
            if not self.choices:
                field = {"int": "discreteIntVal", "double": "discreteDbVal", "str": "discreateStrVal"}
                raise ValueError(f"{field[self.data_type]} is empty: give the values of {self.name!r}")
            return self
        if self.data_type is DataType.STR:
            raise ValueError("a Range of str makes no sense: use Discrete with discreateStrVal")
        is_int = self.data_type is DataType.INT
        low, high = ("minIntVal", "maxIntVal") if is_int else ("minDbVal", "maxDbVal")
        least, most = self.bounds
        if least is None or most is None:
            raise ValueError(f"{low} and {high} are both needed for a Range")
        check_range(least, most, self.step, self.power, is_int, (low, high, "power"))
        if is_int and (self.step or 1) % 1:
            raise ValueError(f"step: {self.step} is no integer, as a Range of int needs it")
        return self

    @property
    def parameter(self) -> Parameter:
        """What it is chosen from, as the service says it."""
        if self.kind is Kind.DISCRETE:
            return Parameter(values=self.choices)
        least, most = self.bounds
        kind: Literal["int", "float"] = "int" if self.data_type is DataType.INT else "float"
        return Parameter(type=kind, min=least, max=most, step=self.step, base=self.power)


class FixedParam(Fields):
    """A hyperparameter of an experiment that the user has chosen."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    name: Word
    data_type: Annotated[DataType, one_of(DataType)]
    fixed_val: Value

    @property
    def value(self) -> float | str:
        """The value; raises `ValueError` if it is not of its type, or too large for it."""
        kinds = {DataType.INT: int, DataType.DOUBLE: float, DataType.STR: str}
        try:
            value: float | str = kinds[self.data_type](self.fixed_val)
        except ValueError:
            raise ValueError(f"fixedVal: {self.fixed_val!r:.80} is no {self.data_type}") from None
        if isinstance(value, int) and abs(value) > EXACT:
            raise ValueError(f"fixedVal: {self.fixed_val:.80} is not from {-EXACT} to {EXACT}")
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"fixedVal: {self.fixed_val:.80} is no finite number")
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        _ = self.value
        return self


class Experiment(Fields):
    """A configuration that the user has chosen."""

    id: Int = 0
    hyper_params: list[FixedParam] = Field(
        min_length=1,
        max_length=MAX_PARAMETERS,
        validation_alias=AliasChoices("hyperParams", "fixedHyperParams"),
    )
