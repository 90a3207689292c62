"""How a search chooses: its algorithm, that one's settings, and how far it may go."""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import AfterValidator, AliasChoices, ConfigDict, Field, model_validator

from edt_launch.adapters.wmla.hypersearch.fields import Fields, Value, one_of
from edt_launch.service.experiment_spec import (
    MOST_BUDGET,
    MOST_MINUTES,
    MOST_PARALLEL,
    MOST_TRIALS,
    Objective,
    Word,
)

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


Limit = AfterValidator(_check_limit)


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
    max_run_time: Annotated[int, Field(le=MOST_MINUTES), Limit] = UNLIMITED
    max_job_num: Annotated[int, Field(le=MOST_TRIALS), Limit] = UNLIMITED
    max_at_once: Annotated[
        int,
        Field(
            ge=1,
            le=MOST_PARALLEL,
            validation_alias=AliasChoices("maxParalleJobNum", "maxParalleJob", "maxParallelJobNum"),
        ),
    ] = 1
    hyperband_eta: Annotated[float, Field(ge=1.5, le=1000)] = 3.0
    algo_params: Annotated[tuple[AlgoParam, ...], Field(max_length=64)] = ()

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
            self.setting("ResourceValue", 1, 1, MOST_BUDGET)
        )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        _ = self.seed, self.warm_up, self.candidates, self.eta, self.resource
        if self.algorithm is Algorithm.HYPERBAND and not self.text("ResourceValue"):
            raise ValueError("algoParams: ResourceValue is missing: the most iterations of a Hyperband trial")
        return self
