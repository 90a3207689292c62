"""What the forms of an experiment and of its training definitions show."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edt_launch.service.database.project_records import Distribution
from edt_launch.service.web.views.asking import Field

Json = Mapping[str, Any]

FRAMEWORKS = {"Horovod": "Horovod script"}
"""How frameworks are called besides their own names."""


def draft(is_draft: bool) -> str:
    """What follows the addresses of forms as long as an experiment is a draft."""
    return "?draft=1" if is_draft else ""


@dataclass(frozen=True)
class FormView:
    """The form of an experiment.

    Attributes:
        experiment: what REST answers; None for one that is not there yet.
        values: of the form's fields.
        folders: that can be its source.
        is_valid: whether it could be run.
        is_draft: whether it was made only to have training definitions added, and not saved since.
        error: what was wrong with what the form was sent with.
    """

    project: Json
    experiment: Json | None
    values: Mapping[str, str]
    folders: Sequence[str]
    is_valid: bool
    is_draft: bool = False
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
        return "New experiment" if self.experiment is None else "Experiment"


@dataclass(frozen=True)
class AddView:
    """The form by which a training definition is added: a new one, or an existing one."""

    experiment: Json
    is_new: bool
    is_draft: bool
    values: Mapping[str, str]
    existing: Field
    framework: Field
    distribution: Field
    error: str = ""

    def tab(self, name: str) -> str:
        """The address of the form's tab of a name."""
        return f"/experiments/{self.experiment['id']}/add?tab={name}{'&draft=1' if self.is_draft else ''}"

    @property
    def back(self) -> str:
        """Where one comes from."""
        return f"/experiments/{self.experiment['id']}/edit{draft(self.is_draft)}"


def add_view(
    experiment: Json,
    definitions: Sequence[Json],
    frameworks: Sequence[str],
    values: Mapping[str, str],
    *,
    is_new: bool,
    is_draft: bool,
    error: str = "",
    are_all: bool = True,
) -> AddView:
    """The form with what it was sent with; `are_all`: whether the definitions are all of the project."""
    return AddView(
        experiment,
        is_new,
        is_draft,
        values,
        Field(
            "definition",
            "Training definition" if are_all else f"Training definition (the newest {len(definitions)})",
            values.get("definition", ""),
            False,
            [(one["id"], one["name"]) for one in definitions],
        ),
        Field(
            "framework",
            "Framework",
            values.get("framework", frameworks[0]),
            False,
            [(one, FRAMEWORKS.get(one, one)) for one in frameworks],
        ),
        Field(
            "distribution",
            "Distributed training type",
            values.get("distribution", Distribution.ELASTIC),
            False,
            [(str(one), str(one)) for one in Distribution],
        ),
        error,
    )
