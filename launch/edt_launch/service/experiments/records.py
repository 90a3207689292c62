"""Records of projects, training definitions, experiments and runs, like those in `records`."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from edt_launch.service.db.types import Big, Str16, Str64, Str128


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
    """An experiment: training definitions of its project, and how they are run.

    Attributes:
        source: its folder of data, below the service's one; empty for that itself.
        command: runs instead of the commands of its definitions, if it has words.
        metric, objective: by which value runs are compared, and which is better; empty: as it is called.
        version, changed, changed_by: as of a project.
    """

    id: Str16
    project: Str16
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
    """A run of a training definition in an experiment: a job, which may have been deleted since.

    Attributes:
        definition, name: id and name of the definition, as it was then.
        code, digest: which of its codes was run; 0 and empty without one.
        owner: who started it.
        spec: the job's `specification.JobSpec`.
        outcome: what has come of it, once it has ended: `outcomes.Outcome`.
    """

    id: Str16
    experiment: Str16
    definition: Str16
    name: Str128
    code: int
    digest: Str64
    job: Str16
    owner: Str64
    created: float
    spec: Mapping[str, Any]
    outcome: Mapping[str, Any] | None = None
    number: int = 0
