"""What the store of searches gives and takes, and the states that there are."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class SearchState(StrEnum):
    """Where a search stands, in WMLA's words."""

    SUBMITTED = "SUBMITTED"
    RUNNING = "RUNNING"
    STOPPED = "STOPPED"
    FINISHED = "FINISHED"
    FAILED = "FAILED"
    RECOVERPEND = "RECOVERPEND"


class TrialState(StrEnum):
    """Where a trial stands."""

    SUBMITTED = "SUBMITTED"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    FAILED = "FAILED"
    KILLED = "KILLED"


class Wish(StrEnum):
    """What a search's owner wants of it."""

    RUN = "run"
    STOP = "stop"
    FORCE = "force"


SEARCH_ENDS = frozenset({SearchState.STOPPED, SearchState.FINISHED, SearchState.FAILED})
TRIAL_ENDS = frozenset({TrialState.FINISHED, TrialState.FAILED, TrialState.KILLED})


@dataclass(frozen=True)
class SearchRecord:
    """A search.

    Attributes:
        id: names its folder.
        name: what its owner calls it.
        definition: what is searched how, as its owner has said it.
        file_name: what its archive was called.
        seed: of all that is random.
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
    number: int = 0
    wanted: Wish = Wish.RUN
    state: SearchState = SearchState.SUBMITTED
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
        parameters: its hyperparameters.
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
    state: TrialState = TrialState.SUBMITTED
    metric: float | None = None
    reason: str = ""
    started: float | None = None
    ended: float | None = None

    @property
    def has_ended(self) -> bool:
        """Whether nothing will happen to it any more."""
        return self.state in TRIAL_ENDS
