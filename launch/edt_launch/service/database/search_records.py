"""What the store of searches gives and takes, and the states that there are."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class SearchState(StrEnum):
    """Where a search stands; `waiting`: it cannot go on just now, and is going to."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"


class TrialState(StrEnum):
    """Where a trial stands."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"


class Wish(StrEnum):
    """What a search's owner wants of it; `force`: stop, without waiting for its trials' ends."""

    RUN = "run"
    STOP = "stop"
    FORCE = "force"


SEARCH_ENDS = frozenset({SearchState.STOPPED, SearchState.SUCCEEDED, SearchState.FAILED})
SEARCH_LIVE = frozenset(SearchState) - SEARCH_ENDS
TRIAL_ENDS = frozenset({TrialState.SUCCEEDED, TrialState.FAILED, TrialState.STOPPED})


@dataclass(frozen=True)
class SearchRecord:
    """A search.

    Attributes:
        id: names its folder.
        name: what its owner calls it.
        definition: what is searched how: an `experiment_spec.SearchSpec`.
        file_name: what its archive was called; empty without one.
        seed: of all that is random.
        kind: what makes jobs of its trials; empty: `template` is a `specification.JobSpec`.
        template: of its trials' jobs.
        total: trials in all, if none of them fails; None until it has begun.
        wanted: what its owner wants.
        reason: why it is in its state.
        started: when it was started, the last time.
    """

    id: str
    name: str
    owner: str
    definition: Mapping[str, Any]
    file_name: str
    seed: int
    created: float
    kind: str = ""
    template: Mapping[str, Any] = field(default_factory=dict)
    total: int | None = None
    number: int = 0
    wanted: Wish = Wish.RUN
    state: SearchState = SearchState.QUEUED
    reason: str = ""
    started: float | None = None
    ended: float | None = None

    @property
    def has_ended(self) -> bool:
        """Whether nothing will happen to it, unless it is started again."""
        return self.state in SEARCH_ENDS


@dataclass(frozen=True)
class TrialRecord:
    """A trial of a search.

    Attributes:
        search: the search's id.
        number: its place in the search, from 0.
        point: its coordinates in the search's space.
        parameters: their values.
        budget: iterations that it may use; 0 if the algorithm gives none.
        created: when it was chosen.
        exec, driver: what it and its driver are called, once it has been submitted.
        job: its job, likewise.
        reason: why it is in its state.
    """

    search: str
    number: int
    point: Mapping[str, Any]
    parameters: Mapping[str, Any]
    budget: int
    created: float
    exec: str | None = None
    driver: str | None = None
    job: str | None = None
    state: TrialState = TrialState.QUEUED
    metric: float | None = None
    reason: str = ""
    started: float | None = None
    ended: float | None = None

    @property
    def has_ended(self) -> bool:
        """Whether nothing will happen to it any more."""
        return self.state in TRIAL_ENDS
