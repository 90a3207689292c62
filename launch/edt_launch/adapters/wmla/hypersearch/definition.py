"""What a search is, as WMLA's clients say it: fields, their bounds and defaults.

The names on the wire are WMLA's, its spelling mistakes included. Numbers may be given as strings; fields that
are not known here are left alone.
"""

import json
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    AliasChoices,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from edt_launch.adapters.wmla.hypersearch.hyperparameters import (
    DataType,
    Experiment,
    Fields,
    HyperParam,
    Kind,
    Value,
    one_of,
)
from edt_launch.service.errors import InvalidError
from edt_launch.service.experiments.searches import spec as core
from edt_launch.service.experiments.searches.spec import (
    MAX_BUDGET,
    MAX_MINUTES,
    MAX_PARALLEL,
    MAX_PARAMETERS,
    MAX_TRIALS,
    Objective,
    Word,
)
from edt_launch.service.jobs.specification import MAX_TEXT
from edt_launch.service.names import PLAIN, TEXT, USER

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


def _check_limit(given: int) -> int:
    if given != UNLIMITED and given < 1:
        raise ValueError(f"{given} is neither {UNLIMITED}, no limit, nor 1 or more")
    return given


class AlgoParam(Fields):
    """A setting of one algorithm."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    name: Word
    value: Value


class AlgoDef(Fields):
    """How to search."""

    algorithm: Annotated[Algorithm, one_of(Algorithm)]
    objective_metric: Word
    objective: Annotated[Objective, one_of(Objective)]
    max_run_time: Annotated[int, Field(le=MAX_MINUTES), AfterValidator(_check_limit)] = UNLIMITED
    max_job_num: Annotated[int, Field(le=MAX_TRIALS), AfterValidator(_check_limit)] = UNLIMITED
    max_at_once: int = Field(
        default=1,
        ge=1,
        le=MAX_PARALLEL,
        validation_alias=AliasChoices("maxParalleJobNum", "maxParalleJob", "maxParallelJobNum"),
    )
    hyperband_eta: Annotated[float, Field(ge=1.5, le=1000)] = 3.0
    algo_params: Annotated[tuple[AlgoParam, ...], Field(max_length=64)] = ()

    @property
    def settings(self) -> dict[str, Any]:
        """Those of the algorithms, as `core.SearchSpec` calls them; `budget` is a Hyperband trial's.

        Raises:
            ValueError: one of `algo_params` is no number, or out of bounds.
        """
        seed = int(self._number("RandomSeed", UNLIMITED, UNLIMITED, 2**32 - 1))
        random = self._number("InitPoints", 10, 1, MAX_TRIALS)
        return {
            "seed": None if seed < 0 else seed,
            "warm_up": int(self._number("WarmUp", random, 1, MAX_TRIALS)),
            "candidates": int(self._number("EICandidate", 24, 1, 10_000)),
            "eta": self._number("eta", self.hyperband_eta, 1.5, 1000),
            "budget": self._text("ResourceName") or RESOURCE_NAME,
            "max_budget": int(self._number("ResourceValue", 1, 1, MAX_BUDGET)),
        }

    def _number(self, name: str, default: float, least: float, most: float) -> float:
        given = self._text(name)
        if not given:
            return default
        try:
            number = float(given)
        except ValueError:
            raise ValueError(f"algoParams: {name}: {given!r:.80} is no number") from None
        if not least <= number <= most:
            raise ValueError(f"algoParams: {name}: {given:.80} is not from {least:g} to {most:g}")
        return number

    def _text(self, name: str) -> str | None:
        values = (param.value for param in self.algo_params if param.name.lower() == name.lower())
        return next(values, None)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        _ = self.settings
        if self.algorithm is Algorithm.HYPERBAND and not self._text("ResourceValue"):
            raise ValueError("algoParams: ResourceValue is missing: the most iterations of a Hyperband trial")
        return self


class ModelSpec(Fields):
    """What a trial runs: the same as for `/execs`."""

    args: Annotated[str, StringConstraints(pattern=f"^{TEXT}$", min_length=1, max_length=MAX_TEXT)]
    sig_name: Annotated[str, StringConstraints(pattern=f"^{PLAIN}$", max_length=256)] = ""


class Definition(Fields):
    """A search."""

    hpo_name: Annotated[str, StringConstraints(pattern=rf"^{USER}$")] | None = None
    model_spec: ModelSpec
    algo_def: AlgoDef
    hyper_params: Annotated[tuple[HyperParam, ...], Field(max_length=MAX_PARAMETERS)] = ()
    experiments: Annotated[tuple[Experiment, ...], Field(max_length=MAX_TRIALS)] = ()

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
        if algorithm is Algorithm.HYPERBAND and (budget := self.algo_def.settings["budget"]) in names:
            raise ValueError(f"hyperParams: {budget!r} is Hyperband's resource already")
        if algorithm is Algorithm.GRID:
            for at, param in enumerate(self.hyper_params):
                if param.kind is Kind.RANGE and param.data_type is DataType.DOUBLE and param.step is None:
                    raise ValueError(f"hyperParams[{at}].step is missing: Grid cannot try all of a range")
        return self

    @property
    def spec(self) -> core.SearchSpec:
        """What is searched how, as the service says it."""
        algo = self.algo_def
        is_list = algo.algorithm is Algorithm.EXPERIMENTS
        return core.SearchSpec(
            metric=algo.objective_metric,
            objective=algo.objective,
            algorithm=core.Algorithm.LIST if is_list else core.Algorithm(algo.algorithm.lower()),
            parameters={param.name: param.parameter for param in self.hyper_params},
            configurations=tuple(
                {param.name: param.value for param in one.hyper_params} for one in self.experiments
            ),
            max_trials=None if algo.max_job_num == UNLIMITED else algo.max_job_num,
            max_parallel=algo.max_at_once,
            max_minutes=None if algo.max_run_time == UNLIMITED else algo.max_run_time,
            **algo.settings,
        )


def parse(text: str | bytes) -> Definition:
    """Read a search's definition; an `InvalidError` names each field, its value and what it may be."""
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
