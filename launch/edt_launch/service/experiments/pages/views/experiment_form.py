"""What the forms of an experiment and of its training definitions show."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from edt_launch.service.experiments.records import DefinitionRecord, Distribution, TrainingRecord
from edt_launch.service.experiments.spec import HOROVOD, frameworks
from edt_launch.service.web.asking import Field
from edt_launch.service.web.crumbs import Crumb, project

Json = Mapping[str, Any]

LABELS = {
    "name": "name", "description": "description", "source": "data folder",
    "command": "global execution command", "metric": "primary metric", "objective": "goal",
}  # fmt: skip
"""What is compared if two people have changed an experiment."""

ATTRIBUTES = {
    "distribution": "distributed training type", "min": "minimum GPUs",
    "max": "maximum GPUs",
}  # fmt: skip
"""What is compared if two people have changed how an experiment runs a training definition."""

OBJECTIVES = [
    ("", "automatic: lower loss or error, else higher"),
    ("minimize", "minimize"),
    ("maximize", "maximize"),
]
"""Which values of a metric are better."""

FRAMEWORKS = {
    HOROVOD: "Horovod script: a command that uses Horovod or edt_hvd",
    "torchrun": "torchrun: torchrun's options and a script of torch.distributed",
    "edtPyTorch": "edtPyTorch: an elastic WMLA program",
    "distPyTorch": "distPyTorch: a WMLA program on several GPUs, never resized",
    "PyTorch": "PyTorch: a WMLA program on one GPU",
}
"""What frameworks are."""


def draft(is_draft: bool) -> str:
    """What follows the addresses of forms as long as an experiment is a draft."""
    return "?draft=1" if is_draft else ""


@dataclass(frozen=True)
class FormView:
    """The form of an experiment.

    Attributes:
        experiment: what REST answers; None for one that is not there yet.
        values: of the form's fields.
        seen: the version that these are about.
        folders: that can be its source.
        is_valid: whether it could be run.
        is_draft: whether it was made only to have training definitions added, and not saved since.
        key: of what the form starts.
        error: what was wrong with what the form was sent with.
    """

    project: Json
    experiment: Json | None
    values: Mapping[str, str]
    seen: int | None
    folders: Sequence[str]
    is_valid: bool
    is_draft: bool
    key: str
    error: str = ""

    @property
    def address(self) -> str:
        """Where the form is sent."""
        if self.experiment is None:
            return "/experiments/new"
        return f"/experiments/{self.experiment['id']}/edit{draft(self.is_draft)}"

    @property
    def back(self) -> str:
        """Where one comes from."""
        if self.experiment is None:
            return f"/experiments/projects/{self.project['id']}"
        return f"/experiments/{self.experiment['id']}"

    @property
    def title(self) -> str:
        """Of the page."""
        return "New experiment" if self.experiment is None or self.is_draft else "Edit experiment"

    @property
    def crumbs(self) -> Sequence[Crumb]:
        """The pages above it."""
        above = project(self.project["id"], self.project["name"])
        if self.experiment is None or self.is_draft:
            return above
        return [*above, Crumb(f"/experiments/{self.experiment['id']}", self.experiment["name"])]

    @property
    def objective(self) -> Field:
        """Which values of the metric are better."""
        return Field("objective", "Goal", self.values.get("objective", ""), False, OBJECTIVES)


@dataclass(frozen=True)
class AddView:
    """The form by which a training definition is added: a new one, or an existing one.

    Attributes:
        experiment: as REST answers it.
        definitions: of its project, those that can be added.
        values: of the form's fields.
        seen: the version of the experiment that these are about.
        are_all: whether the definitions are all of the project.
        last: how these have been run the last time, by their ids.
        begun: what the form of the experiment was sent with, if it is only made with its first definition.
        back: where one comes from.
    """

    experiment: Json
    definitions: Sequence[DefinitionRecord]
    values: Mapping[str, str]
    is_new: bool
    is_draft: bool
    seen: int | None
    are_all: bool
    last: Mapping[str, TrainingRecord]
    crumbs: Sequence[Crumb]
    begun: str
    back: str
    error: str = ""

    def tab(self, name: str) -> str:
        """The address of the form's tab of a name."""
        if self.begun:
            return f"/experiments/new/definition?{urlencode({'tab': name, 'begun': self.begun})}"
        return f"/experiments/{self.experiment['id']}/add?tab={name}{'&draft=1' if self.is_draft else ''}"

    @property
    def address(self) -> str:
        """Where the form is sent."""
        tab = "new" if self.is_new else "existing"
        return f"/experiments/new/definition?tab={tab}" if self.begun else self.tab(tab)

    @property
    def present(self) -> str:
        """The name of one that the experiment has, of which the form changes the attributes."""
        chosen = "" if self.is_new else self.values.get("definition", "")
        known = {one["definition"]: one["name"] for one in self.experiment["trainings"]}
        return str(known.get(chosen, ""))

    @property
    def title(self) -> str:
        """Of the page."""
        return f"Attributes of {self.present}" if self.present else "Add training definition"

    @property
    def framework(self) -> Field:
        """How a new definition is run."""
        return framework_field(self.values.get("framework", HOROVOD))

    @property
    def distribution(self) -> Field:
        """How it is spread."""
        options = [(str(one), str(one)) for one in Distribution]
        chosen = self.values.get("distribution", Distribution.ELASTIC)
        return Field("distribution", "Distributed training type", chosen, False, options)


def values_of(experiment: Json) -> dict[str, str]:
    """What the form of an experiment begins with."""
    return {
        **{name: experiment[name] for name in ("name", "description", "source", "metric")},
        "global": "1" if experiment["command"] else "",
        "command": shlex.join(experiment["command"]),
        "objective": experiment["objective"] or "",
    }


def compared(values: Mapping[str, str]) -> dict[str, str]:
    """What the form of an experiment was sent with, as `values_of` has it."""
    return {**values, "command": values["command"] if values["global"] else ""}


def attributes(trainings: Sequence[Json], definition: str) -> dict[str, str]:
    """What the form of the attributes of a training definition begins with, if it is one of these."""
    return {
        name: str(one[name])
        for one in trainings
        if one["definition"] == definition
        for name in ("definition", "distribution", "min", "max")
    }


def framework_field(chosen: str) -> Field:
    """The field by which a definition's framework is chosen."""
    options = [(one, FRAMEWORKS.get(one, one)) for one in frameworks()]
    return Field("framework", "Framework", chosen, False, options)
