"""What the interface gives of projects, training definitions, experiments and runs, as in `schemas`."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from edt_launch.service.experiments.records import Distribution, Role
from edt_launch.service.experiments.searches.spec import Objective
from edt_launch.service.files.rest.schemas import AboutValue
from edt_launch.service.jobs.schemas import Change
from edt_launch.service.jobs.states import State

Next = Annotated[int | None, Field(description="What to continue `after`; null at the end.")]


class _Versioned(BaseModel):
    id: str
    name: str
    description: str
    owner: str
    created: float
    version: int = Field(description="Grows with each change; as the answer's ETag, for If-Match.")
    changed: float
    changed_by: str


class Member(BaseModel):
    """Somebody who may do something with a project."""

    user: str
    role: Role


class Project(_Versioned):
    """A project."""

    role: Role = Field(description="Of who asks; its owner is a manager.")


class ProjectWithMembers(Project):
    """A project and its members, besides its owner."""

    members: list[Member]


class Projects(BaseModel):
    """A page of projects that the user is a member of, in the order of their creation."""

    projects: list[Project]
    next: Next


class Code(BaseModel):
    """Code of a training definition: a version of it, which never changes."""

    place: int = Field(description="Counts them, from 1.")
    digest: str
    name: str = Field(description="What the archive was called.")
    size: int = Field(description="Bytes of the archive.")
    owner: str
    created: float


class Definition(_Versioned):
    """A training definition."""

    project: str
    framework: str
    command: list[str]
    code: int = Field(description="Which of its codes is run, by its place; 0: none.")


class DefinitionWithCodes(Definition):
    """A training definition and its codes, oldest first."""

    codes: list[Code]


class Definitions(BaseModel):
    """A page of training definitions, in the order of their creation."""

    definitions: list[Definition]
    next: Next


class Training(BaseModel):
    """What an experiment does with a training definition."""

    definition: str
    name: str
    distribution: Distribution
    devices: int = Field(description="Of each node.")
    min: int
    max: int


class Experiment(_Versioned):
    """An experiment, or a search."""

    project: str | None = Field(description="Null for a search.")
    algorithm: str = Field(description="How a search chooses its trials; empty if people start the runs.")
    source: str
    command: list[str]
    metric: str
    objective: Objective | None
    runs: int = Field(description="How many it has had.")


class ExperimentWithTrainings(Experiment):
    """An experiment and its training definitions."""

    trainings: list[Training]


class Experiments(BaseModel):
    """A page of experiments, in the order of their creation."""

    experiments: list[Experiment]
    next: Next


class Run(BaseModel):
    """A run of a training definition, or a trial. Its job's fields are null if the job was deleted."""

    id: str
    experiment: str
    definition: str
    name: str = Field(description="Of its training definition, as it was then.")
    code: int = Field(description="Which code of the definition was run; 0: none.")
    digest: str
    job: str | None = Field(description="Null for a trial that could not be submitted.")
    job_name: str | None
    owner: str = Field(description="Who started it, whose job it is.")
    created: float
    tags: list[str] = Field(description="Of its job.")
    comment: str = Field(description="Of its job.")
    state: State | Literal["deleted"] = Field(description="Of its job.")
    ended_as: State | None = Field(description="Of a job that has ended, also if it was deleted since.")
    started: float | None
    ended: float | None
    seconds: float = Field(description="From its start, to its end or until now.")
    size: int | None = Field(description="Nodes that it has been given.")
    min: int
    max: int
    step: int | None
    total_steps: int | None
    hours: float = Field(description="GPUs times hours that it has had.")
    values: dict[str, AboutValue] = Field(description="What it has reported: of its last 64 MiB of events.")
    place: int | None = Field(description="Of a trial in its search, from 0.")
    parameters: dict[str, float | int | str] = Field(description="Of a trial.")


class Runs(BaseModel):
    """A page of an experiment's runs, the newest first."""

    runs: list[Run]
    next: int | None = Field(description="What to continue `before`; null at the end.")


class Started(BaseModel):
    """Runs that were started."""

    runs: list[Run]


class Preview(BaseModel):
    """What starting would change."""

    changes: list[Change] = Field(description="Those without a job are what would be started.")
    lines: list[str] = Field(description="The same for people.")


class Metric(BaseModel):
    """A value by which runs are compared."""

    name: str
    objective: Objective
    best: str | None = Field(description="The run whose last value is the best one.")


class Parameter(BaseModel):
    """Something that the runs were not all started with."""

    name: str
    values: list[str | None] = Field(description="Of each run, in the order of `runs`.")


class Comparison(BaseModel):
    """Runs beside each other."""

    runs: list[Run]
    metrics: list[Metric] = Field(description="The experiment's first.")
    parameters: list[Parameter] = Field(description="Only what differs.")


class CurveValues(BaseModel):
    """A value at the points of a curve."""

    values: list[float | None]
    gaps: list[int] = Field(description="Points at which it was no finite number.")
    about: AboutValue


class Curve(CurveValues):
    """Values of a job over time, thinned out so that extremes stay: `values` are those of the first name."""

    job: str
    name: str = Field(description="What the job is called.")
    owner: str
    time: list[float]
    training: list[float] = Field(description="Seconds of training, without pauses.")
    step: list[int]
    size: list[int]
    others: dict[str, CurveValues] = Field(description="By the other names, over the same points.")


class Curves(BaseModel):
    """Values of several jobs."""

    name: str = Field(description="The first one.")
    series: list[Curve]
