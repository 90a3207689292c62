"""What users say of projects, training definitions, experiments and runs: fields, bounds, defaults."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from edt_launch.launcher.programs import kinds
from edt_launch.service.app.home import DEFINITION_ID, JOB_ID
from edt_launch.service.experiments.records import Distribution, Role
from edt_launch.service.experiments.searches.spec import Objective
from edt_launch.service.jobs.specification import Count, Name, Priority, Text
from edt_launch.service.names import MAX_NAME, PLAIN, TEXT, VARIABLE

MAX_MEMBERS = 100
MAX_TRAININGS = 20
"""Training definitions of an experiment."""
MAX_CODES = 200
"""Codes of a training definition."""

HOROVOD = "Horovod"
"""The framework of scripts that are run as they are: one process a device."""

EXPERIMENT_ID, RUN_ID = "[hx][a-z2-7]{8}", "r[a-z2-7]{8}"
"""Those of searches begin with h."""

Title = Annotated[str, StringConstraints(pattern=f"^{PLAIN}$", min_length=1, max_length=MAX_NAME)]
Description = Annotated[str, StringConstraints(pattern=f"^{TEXT}$", max_length=4096)]
Source = Annotated[
    str,
    StringConstraints(pattern=f"^{PLAIN}$", max_length=1024),
    Field(description="A folder below the service's folder of data; empty: that itself."),
]


def _begins(words: list[str]) -> list[str]:
    if words and not words[0]:
        raise ValueError("command: the first word is empty")
    return words


Words = Annotated[list[Text], Field(max_length=4096), AfterValidator(_begins)]
Metric = Annotated[str, StringConstraints(pattern=f"^{PLAIN}$", max_length=128)]


def frameworks() -> tuple[str, ...]:
    """How training definitions can be run."""
    return (*kinds.frameworks(), HOROVOD)


def _known(framework: str) -> str:
    if framework not in frameworks():
        raise ValueError(f"{framework!r:.40} does not run here: give one of {', '.join(frameworks())}")
    return framework


Framework = Annotated[
    str,
    AfterValidator(_known),
    Field(json_schema_extra={"enum": list(frameworks())}, description="How the program is run."),
]


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ProjectSpec(_Asked):
    """A project to make."""

    name: Annotated[Title, Field(description="That no other project has.")]
    description: Description = ""


class ProjectChange(_Asked):
    """What to change of a project; what is left out stays."""

    name: Title | None = None
    description: Description | None = None


class Membership(_Asked):
    """What somebody may do with a project."""

    role: Role


class DefinitionSpec(_Asked):
    """A training definition to make."""

    project: Annotated[str, Field(max_length=MAX_NAME, description="Id or name of its project.")]
    name: Annotated[Title, Field(description="That no other definition of the project has.")]
    description: Description = ""
    framework: Framework = HOROVOD
    command: Annotated[Words, Field(description="Its words; empty: each experiment gives one.")] = []
    code_of: Annotated[
        str | None,
        Field(pattern=f"^{JOB_ID}$", description="A job whose submitted files to take, instead of `code`."),
    ] = None


class DefinitionChange(_Asked):
    """What to change of a training definition; what is left out stays."""

    name: Title | None = None
    description: Description | None = None
    framework: Framework | None = None
    command: Words | None = None


class TrainingSpec(_Asked):
    """What an experiment does with a training definition: attributes during this experiment."""

    definition: Annotated[str, Field(pattern=f"^{DEFINITION_ID}$", description="Its id.")]
    distribution: Annotated[
        Distribution, Field(description="On a number of nodes that changes, on all of them, or on one.")
    ] = Distribution.ELASTIC
    devices: Annotated[Literal[1], Field(description="Of each node.")] = 1
    min: Annotated[
        Count | None, Field(description="Nodes at least: 1 by default, or `max` if `Distributed`.")
    ] = None
    max: Annotated[Count | None, Field(description="Nodes at most; `min` by default.")] = None

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        least, most = self.bounds
        if self.distribution is Distribution.SINGLE and (least, most) != (1, 1):
            raise ValueError(f"Single has one node: min {least}, max {most}")
        if self.distribution is Distribution.DISTRIBUTED and least != most:
            raise ValueError(f"Distributed has all of its nodes at once: min, {least}, is not max, {most}")
        if most < least:
            raise ValueError(f"max: {most} is less than min, {least}")
        return self

    @property
    def bounds(self) -> tuple[int, int]:
        """Nodes at least and at most."""
        if self.min is None and self.distribution is Distribution.DISTRIBUTED:
            return self.max or 1, self.max or 1
        least = self.min or 1
        return least, least if self.max is None else self.max


class _Experiment(_Asked):
    @model_validator(mode="after")
    def _each_once(self) -> Self:
        trainings: tuple[TrainingSpec, ...] = getattr(self, "trainings", None) or ()
        used = [training.definition for training in trainings]
        if twice := {name for name in used if used.count(name) > 1}:
            raise ValueError(f"trainings: {', '.join(sorted(twice))} is there twice: name it once")
        return self


Trainings = Annotated[tuple[TrainingSpec, ...], Field(max_length=MAX_TRAININGS)]
Better = Annotated[
    Objective | None,
    Field(description="Which values of `metric` are better; null: as its name says, a loss the lower."),
]


class ExperimentSpec(_Experiment):
    """An experiment to make."""

    project: Annotated[str, Field(max_length=MAX_NAME, description="Id or name of its project.")]
    name: Annotated[Title, Field(description="That no other experiment of the project has.")]
    description: Description = ""
    source: Source = ""
    command: Annotated[Words, Field(description="Takes the place of its definitions' commands.")] = []
    trainings: Annotated[Trainings, Field(description="Its training definitions.")] = ()
    metric: Annotated[Metric, Field(description="Value by which runs are compared; empty: loss.")] = ""
    objective: Better = None


class ExperimentChange(_Experiment):
    """What to change of an experiment; what is left out stays."""

    name: Title | None = None
    description: Description | None = None
    source: Source | None = None
    command: Words | None = None
    trainings: Trainings | None = None
    metric: Metric | None = None
    objective: Better = None


class RunSpec(_Asked):
    """What to start of an experiment."""

    definitions: Annotated[
        tuple[Annotated[str, Field(pattern=f"^{DEFINITION_ID}$")], ...] | None,
        Field(min_length=1, max_length=MAX_TRAININGS, description="Only these; null: all."),
    ] = None
    name: Annotated[Name, Field(description="What to call the jobs; as their definitions by default.")] = ""
    command: Annotated[Words, Field(description="For these runs alone.")] = []
    environment: Annotated[
        dict[Annotated[str, StringConstraints(pattern=f"^{VARIABLE}$")], Text], Field(max_length=1024)
    ] = {}
    priority: Priority = 0
