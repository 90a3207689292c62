"""Searches and their trials, as in `records`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from edt_launch.service.db.types import Big, Str16, Str64, Str128, Str255


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


class SearchWanted(StrEnum):
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
        definition: what is searched how: an `search_spec.SearchSpec`.
        file_name: what its archive was called; empty without one.
        seed: of all that is random.
        kind: what makes jobs of its trials; empty: `template` is a `specification.JobSpec`.
        total: trials in all, if none of them fails; None until it has begun.
        started: when it was started, the last time.
    """

    id: Str16
    name: Str128
    owner: Str64
    definition: Mapping[str, Any]
    file_name: Str255
    seed: Big
    created: float
    kind: Str16 = ""
    template: Mapping[str, Any] = field(default_factory=dict)
    total: int | None = None
    number: int = 0
    wanted: SearchWanted = SearchWanted.RUN
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
        number: its place in the search, from 0.
        point, parameters: its coordinates in the space that is searched, and their values.
        budget: iterations that it may use; 0 if the algorithm gives none.
        created: when it was chosen.
        exec, driver, job: what it, its driver and its job are called, once it has been submitted.
    """

    search: Str16
    number: int
    point: Mapping[str, Any]
    parameters: Mapping[str, Any]
    budget: Big
    created: float
    exec: Str128 | None = None
    driver: Str128 | None = None
    job: Str16 | None = None
    state: TrialState = TrialState.QUEUED
    metric: float | None = None
    reason: str = ""
    started: float | None = None
    ended: float | None = None

    @property
    def has_ended(self) -> bool:
        """Whether nothing will happen to it any more."""
        return self.state in TRIAL_ENDS
