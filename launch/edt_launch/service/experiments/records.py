"""Records of projects, training definitions, experiments and runs, searches and their trials among them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from edt_launch.service.db.types import Big, Str16, Str64, Str128, Str255


class Role(StrEnum):
    """What a member of a project may do: see it; change and start what is in it; change its members, too."""

    VIEWER = "viewer"
    EDITOR = "editor"
    MANAGER = "manager"

    @property
    def rank(self) -> int:
        """A role may do what those of lower ranks may."""
        return list(Role).index(self)


class Distribution(StrEnum):
    """How a training is spread: on a number of nodes that changes, on all of them, on one."""

    ELASTIC = "Elastic"
    DISTRIBUTED = "Distributed"
    SINGLE = "Single"


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
class ProjectRecord:
    """A project; its owner is a manager of it, and needs not be among its members.

    Attributes:
        version, changed, changed_by: how often it has been changed, when the last time, and by whom.
    """

    id: Str16
    name: Str128
    description: str
    owner: Str64
    created: float
    changed: float
    changed_by: Str64
    version: int = 1
    number: int = 0


@dataclass(frozen=True)
class MemberRecord:
    """Somebody who may do something with a project."""

    project: Str16
    user: Str64
    role: Role


@dataclass(frozen=True)
class DefinitionRecord:
    """A training definition: a program that experiments of its project may run.

    Attributes:
        framework: how the program is run: one of `project_spec.frameworks()`.
        command: its words; empty: each experiment gives one.
        code: which of its codes is run, by `CodeRecord.place`; 0: it has none.
        version, changed, changed_by: as of a project. New code is a change.
    """

    id: Str16
    project: Str16
    name: Str128
    description: str
    framework: Str16
    command: tuple[str, ...]
    owner: Str64
    created: float
    changed: float
    changed_by: Str64
    code: int = 0
    version: int = 1
    number: int = 0


@dataclass(frozen=True)
class CodeRecord:
    """Code of a training definition, which never changes.

    Attributes:
        place: counts the codes of a definition, from 1.
        digest: tells it from others.
        name: what the archive was called.
        size: bytes of the archive.
    """

    definition: Str16
    place: int
    digest: Str64
    name: Str128
    size: Big
    owner: Str64
    created: float


@dataclass(frozen=True)
class ExperimentRecord:
    """An experiment: training definitions of its project, or a search, and how they are run.

    Attributes:
        project: whose members may see it; None: its owner and administrators alone, as of a search.
        source: its folder of data, below the service's one; empty for that itself.
        command: runs instead of the commands of its definitions, if it has words.
        metric, objective: by which value runs are compared, and which is better; empty: as it is called.
        version, changed, changed_by: as of a project.
        algorithm: how a search chooses its runs, which are called trials; empty: people start them.
        generator: what a search chooses from: a `searches.spec.SearchSpec`.
        max_trials: the limit that it has; None without one.
        kind: what makes jobs of its trials; empty: `template` is a `specification.JobSpec`.
        file_name: what its archive was called; empty without one.
        seed: of all that is random.
        total: trials in all, if none of them fails; None until it has begun.
        wanted, state, reason: of a search.
        started: when it was started, the last time.
    """

    id: Str16
    project: Str16 | None
    name: Str128
    description: str
    source: str
    command: tuple[str, ...]
    metric: Str128
    objective: Str16
    owner: Str64
    created: float
    changed: float
    changed_by: Str64
    version: int = 1
    number: int = 0
    algorithm: Str16 = ""
    generator: Mapping[str, Any] = field(default_factory=dict)
    max_trials: int | None = None
    kind: Str16 = ""
    template: Mapping[str, Any] = field(default_factory=dict)
    file_name: Str255 = ""
    seed: Big = 0
    total: int | None = None
    wanted: SearchWanted = SearchWanted.RUN
    state: SearchState = SearchState.QUEUED
    reason: str = ""
    started: float | None = None
    ended: float | None = None

    @property
    def has_ended(self) -> bool:
        """Whether nothing will happen to a search, unless it is started again."""
        return self.state in SEARCH_ENDS


@dataclass(frozen=True)
class TrainingRecord:
    """What an experiment does with a training definition.

    Attributes:
        place: its place in the experiment, from 0.
        devices: of each node.
        least, most: nodes.
    """

    experiment: Str16
    place: int
    definition: Str16
    distribution: Distribution
    devices: int
    least: int
    most: int


@dataclass(frozen=True)
class RunRecord:
    """A run of a training definition in an experiment, or a trial of a search: a job.

    Attributes:
        definition, name: id and name of the definition, as it was then; of a trial, only a name.
        code, digest: which of its codes was run; 0 and empty without one.
        job: which may have been deleted since; None if a trial could not be submitted.
        owner: who started it.
        spec: the job's `specification.JobSpec`; empty for a trial.
        outcome: what has come of it, once it has ended: `outcomes.Outcome`.
        place: of a trial in its search, from 0; None for other runs, whose fields below stay as they are.
        point, parameters: its coordinates in the space that is searched, and their values.
        budget: iterations that it may use; 0 if the algorithm gives none.
        exec, driver: other names of its job, if it has some.
        state, metric, reason, started, ended: what the search knows of it.
    """

    id: Str16
    experiment: Str16
    definition: Str16
    name: Str128
    code: int
    digest: Str64
    job: Str16 | None
    owner: Str64
    created: float
    spec: Mapping[str, Any]
    outcome: Mapping[str, Any] | None = None
    number: int = 0
    place: int | None = None
    point: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    budget: Big = 0
    exec: Str128 | None = None
    driver: Str128 | None = None
    state: TrialState = TrialState.QUEUED
    metric: float | None = None
    reason: str = ""
    started: float | None = None
    ended: float | None = None

    @property
    def has_ended(self) -> bool:
        """Whether nothing will happen to a trial any more."""
        return self.state in TRIAL_ENDS
