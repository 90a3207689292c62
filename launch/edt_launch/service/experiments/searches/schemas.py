"""What the interface gives of searches and their trials, as in `jobs.schemas`."""

from typing import Any

from pydantic import BaseModel, Field

from edt_launch.service.experiments.records import SearchState, SearchWanted, TrialState
from edt_launch.service.experiments.searches.spec import Algorithm, Objective


class Trial(BaseModel):
    """A trial of a search."""

    number: int = Field(validation_alias="place", description="Its place in the search, from 0.")
    state: TrialState
    reason: str = Field(description="Why it is in its state.")
    parameters: dict[str, float | int | str]
    budget: int = Field(description="What it may use, for `hyperband`; else 0.")
    metric: float | None
    job: str | None = Field(description="Id of its job; null as long as it has none.")
    started: float | None
    ended: float | None


class Search(BaseModel):
    """A search; only its owner and administrators see `reason`, `best`, `trials`, `spec`, `job`."""

    id: str
    name: str
    owner: str
    state: SearchState
    wanted: SearchWanted
    reason: str | None = Field(description="Why it is in its state.")
    algorithm: Algorithm
    metric: str
    objective: Objective
    total: int | None = Field(description="Trials in all, if none fails; null until it has begun.")
    counts: dict[TrialState, int] = Field(description="How many trials are in each state.")
    created: float
    started: float | None
    ended: float | None
    best: Trial | None = Field(description="The trial with the best metric so far.")


class SearchWithTrials(Search):
    """A search and its trials."""

    trials: list[Trial] | None
    spec: dict[str, Any] | None = Field(description="What is searched how.")
    job: dict[str, Any] | None = Field(description="What each trial is.")


class Searches(BaseModel):
    """A page of searches, in the order of their creation."""

    searches: list[Search]
    next: int | None = Field(description="What to continue `after`; null at the end.")
