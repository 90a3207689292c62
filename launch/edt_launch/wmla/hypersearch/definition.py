"""What a search is, as WMLA's clients say it: fields, their bounds and defaults.

The names on the wire are WMLA's, its spelling mistakes included. Numbers may be given as strings; fields that
are not known here are left alone.
"""

import json
import math
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel

from edt_launch.service.errors import InvalidError
from edt_launch.service.names import PLAIN, TEXT, USER
from edt_launch.service.specification import MOST_TEXT

MOST_TRIALS = 10_000
"""Trials of a search; what "unlimited" means, too."""

MOST_AT_ONCE = 1_000
"""Trials of a search that run at the same time."""

MOST_MINUTES = 10**7
MOST_RESOURCE = 10**9
MOST_PARAMETERS = 256
MOST_VALUES = 10_000
"""Values that a discrete hyperparameter may have."""

EXACT = 2**53
"""Integers up to this are the same in every client's arithmetic."""

UNLIMITED = -1

RESOURCE_NAME = "maxiteration"
"""What `config.json` calls a Hyperband trial's budget, if `ResourceName` does not say."""


class Algorithm(StrEnum):
    """How configurations are chosen."""

    RANDOM = "Random"
    GRID = "Grid"
    EXPERIMENTS = "ExperimentGridSearch"
    HYPERBAND = "Hyperband"
    TPE = "Tpe"
    BAYESIAN = "Bayesian"


class Objective(StrEnum):
    """What is to become of the metric."""

    MINIMIZE = "minimize"
    MAXIMIZE = "maximize"

    @property
    def sign(self) -> int:
        """A metric times this is the smaller, the better it is."""
        return 1 if self is Objective.MINIMIZE else -1


class DataType(StrEnum):
    """What a hyperparameter's values are."""

    INT = "int"
    DOUBLE = "double"
    STR = "str"


class Kind(StrEnum):
    """What a hyperparameter is chosen from."""

    RANGE = "Range"
    DISCRETE = "Discrete"


_SYNONYMS: dict[str, StrEnum] = {
    "gridsearch": Algorithm.GRID,
    "integer": DataType.INT,
    "float": DataType.DOUBLE,
    "string": DataType.STR,
}


def _one_of(kind: type[StrEnum]) -> BeforeValidator:
    """Finds a member whatever the case; says which there are if there is none."""

    def find(given: object) -> object:
        text = str(given).lower()
        found = next((member for member in kind if member.lower() == text), _SYNONYMS.get(text))
        if not isinstance(found, kind):
            raise ValueError(f"{str(given)!r:.80} is none of {', '.join(kind)}")
        return found

    return BeforeValidator(find)


def _check_limit(given: int) -> int:
    if given != UNLIMITED and given < 1:
        raise ValueError(f"{given} is neither {UNLIMITED}, no limit, nor 1 or more")
    return given


Word = Annotated[str, StringConstraints(pattern=f"^{PLAIN}$", min_length=1, max_length=128)]
Limit = AfterValidator(_check_limit)
Int = Annotated[int, Field(ge=-EXACT, le=EXACT)]
Value = Annotated[str, StringConstraints(pattern=f"^{TEXT}$", max_length=4096)]


class _Model(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, allow_inf_nan=False
    )


class ModelSpec(_Model):
    """What a trial runs: the same as for `/execs`."""

    args: Annotated[str, StringConstraints(pattern=f"^{TEXT}$", min_length=1, max_length=MOST_TEXT)]
    sig_name: Annotated[str, StringConstraints(pattern=f"^{PLAIN}$", max_length=256)] = ""


class AlgoParam(_Model):
    """A setting of one algorithm."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    name: Word
    value: Value


class AlgoDef(_Model):
    """How to search."""

    algorithm: Annotated[Algorithm, _one_of(Algorithm)]
    objective_metric: Word
    objective: Annotated[Objective, _one_of(Objective)]
    max_run_time: Annotated[int, Field(le=MOST_MINUTES), Limit] = UNLIMITED
    max_job_num: Annotated[int, Field(le=MOST_TRIALS), Limit] = UNLIMITED
    max_at_once: Annotated[
        int,
        Field(
            ge=1,
            le=MOST_AT_ONCE,
            validation_alias=AliasChoices("maxParalleJobNum", "maxParalleJob", "maxParallelJobNum"),
            serialization_alias="maxParalleJobNum",
        ),
    ] = 1
    hyperband_eta: Annotated[float, Field(ge=1.5, le=1000)] = 3.0
    algo_params: Annotated[list[AlgoParam], Field(max_length=64)] = []

    def setting(self, name: str, default: float, least: float, most: float) -> float:
        """A number among `algo_params`.

        Raises:
            ValueError: it is none, or out of bounds.
        """
        given = self.text(name)
        if not given:
            return default
        try:
            number = float(given)
        except ValueError:
            raise ValueError(f"algoParams: {name}: {given!r:.80} is no number") from None
        if not least <= number <= most:
            raise ValueError(f"algoParams: {name}: {given:.80} is not from {least:g} to {most:g}")
        return number

    def text(self, name: str) -> str | None:
        """One of `algo_params`; None if it is not given."""
        found = (param.value for param in self.algo_params if param.name.lower() == name.lower())
        return next(found, None)

    @property
    def seed(self) -> int | None:
        """`RandomSeed`."""
        given = self.setting("RandomSeed", UNLIMITED, UNLIMITED, 2**32 - 1)
        return None if given < 0 else int(given)

    @property
    def warm_up(self) -> int:
        """Trials of Tpe and Bayesian that are chosen at random."""
        return int(self.setting("WarmUp", self.setting("InitPoints", 10, 1, MOST_TRIALS), 1, MOST_TRIALS))

    @property
    def candidates(self) -> int:
        """Configurations of which Tpe and Bayesian take the one with the best prospects."""
        return int(self.setting("EICandidate", 24, 1, 10_000))

    @property
    def eta(self) -> float:
        """Of how many configurations Hyperband keeps one."""
        return self.setting("eta", self.hyperband_eta, 1.5, 1000)

    @property
    def resource(self) -> tuple[str, int]:
        """Name and highest value of a Hyperband trial's budget."""
        return self.text("ResourceName") or RESOURCE_NAME, int(
            self.setting("ResourceValue", 1, 1, MOST_RESOURCE)
        )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        _ = self.seed, self.warm_up, self.candidates, self.eta, self.resource
        if self.algorithm is Algorithm.HYPERBAND and not self.text("ResourceValue"):
            raise ValueError("algoParams: ResourceValue is missing: the most iterations of a Hyperband trial")
        return self


class HyperParam(_Model):
    """What one hyperparameter is chosen from."""

    name: Word
    kind: Annotated[Kind, _one_of(Kind), Field(alias="type")]
    data_type: Annotated[DataType, _one_of(DataType)]
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
        self._check_power(most)
        return self

    def _check_power(self, most: float) -> None:
        limit = EXACT if self.data_type is DataType.INT else 1e300
        if self.data_type is DataType.INT and self.step is not None and self.step != int(self.step):
            raise ValueError(f"step: {self.step} is no integer, as a Range of int needs it")
        try:
            too_large = (
                self.power is not None and max(self.power**most, self.power ** (self.bounds[0] or 0)) > limit
            )
        except OverflowError:
            too_large = True
        if too_large:
            raise ValueError(f"power: {self.power} to the power of {most} is above {limit:g}")


class FixedParam(_Model):
    """A hyperparameter of an experiment that the user has chosen."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    name: Word
    data_type: Annotated[DataType, _one_of(DataType)]
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


class Experiment(_Model):
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


class Definition(_Model):
    """A search."""

    hpo_name: Annotated[str, StringConstraints(pattern=rf"^{USER}$")] | None = None
    model_spec: ModelSpec
    algo_def: AlgoDef
    hyper_params: Annotated[list[HyperParam], Field(max_length=MOST_PARAMETERS)] = []
    experiments: Annotated[list[Experiment], Field(max_length=MOST_TRIALS)] = []

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        algorithm = self.algo_def.algorithm
        if algorithm is Algorithm.EXPERIMENTS:
            if not self.experiments or self.hyper_params:
                raise ValueError(f"{algorithm} needs experiments, and no hyperParams")
            return self
        if not self.hyper_params or self.experiments:
            raise ValueError(f"{algorithm} needs hyperParams, and no experiments")
        names = [param.name for param in self.hyper_params]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"hyperParams: {twice[0]!r} is there twice")
        if algorithm is Algorithm.HYPERBAND and self.algo_def.resource[0] in names:
            raise ValueError(f"hyperParams: {self.algo_def.resource[0]!r} is Hyperband's resource already")
        if algorithm is Algorithm.GRID:
            for at, param in enumerate(self.hyper_params):
                if param.kind is Kind.RANGE and param.data_type is DataType.DOUBLE and param.step is None:
                    raise ValueError(f"hyperParams[{at}].step is missing: Grid cannot try all of a range")
        return self

    @property
    def dumped(self) -> dict[str, Any]:
        """As JSON says it, in WMLA's names."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def parse(text: str | bytes) -> Definition:
    """Read a search's definition from the request's `data`.

    Raises:
        InvalidError: it makes no sense; the message names each field, its value and what it may be.
    """
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidError(f"data is no JSON: {error}", "send it as json.dumps writes it") from None
    if not isinstance(given, dict):
        raise InvalidError("data is no JSON object", "send {'modelSpec': ..., 'algoDef': ..., ...}")
    try:
        return Definition.model_validate(given)
    except ValidationError as error:
        raise InvalidError("; ".join(map(_told, error.errors()[:5]))) from None


def _told(error: Any) -> str:
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error["loc"]).lstrip(".")
    own = str(error["msg"]).removeprefix("Value error, ").replace("Input should be", "expected")
    value = error.get("input")
    is_told = error["type"] in ("value_error", "missing") or not isinstance(value, str | float | int)
    return ": ".join(part for part in (where, "" if is_told else f"{value!r:.80}", own) if part)
