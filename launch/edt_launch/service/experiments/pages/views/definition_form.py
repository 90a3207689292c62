"""What the form of a training definition shows."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edt_launch.core.text.byte_sizes import byte_size
from edt_launch.service.experiments.pages.views.experiment_form import framework_field
from edt_launch.service.web.asking import Field

Json = Mapping[str, Any]

LABELS = {
    "name": "name", "description": "description", "framework": "framework", "command": "execution command",
    "code": "code",
}  # fmt: skip
"""What is compared if two people have changed a training definition."""


@dataclass(frozen=True)
class DefinitionView:
    """The form of a training definition.

    Attributes:
        values: of the form's fields.
        seen: the version that these are about.
        code: the present version of its code, in words.
        error: what was wrong with what the form was sent with.
    """

    definition: Json
    values: Mapping[str, str]
    framework: Field
    seen: str
    code: str
    error: str

    @property
    def address(self) -> str:
        """Where the form is sent."""
        return f"/experiments/definitions/{self.definition['id']}/edit"

    @property
    def back(self) -> str:
        """Where one comes from."""
        return f"/experiments/projects/{self.definition['project']}"


def form(
    definition: Json,
    values: Mapping[str, str],
    frameworks: Sequence[str],
    seen: int | None,
    error: str = "",
) -> DefinitionView:
    """The form of a definition, with its codes, as REST answers it."""
    return DefinitionView(
        definition,
        values,
        framework_field(frameworks, values["framework"]),
        "" if seen is None else str(seen),
        present_code(definition),
        error,
    )


def values(definition: Json) -> dict[str, str]:
    """What the form begins with."""
    return {
        "name": definition["name"],
        "description": definition["description"],
        "framework": definition["framework"],
        "command": shlex.join(definition["command"]),
    }


def present_code(definition: Json) -> str:
    """The version of its code that a definition runs, in words; empty without one."""
    for code in definition["codes"]:
        if code.place == definition["code"]:
            told = f"{code.name or 'archive'}, {byte_size(code.size)}, of {code.owner}"
            return f"version {code.place} ({told}, {code.digest[:12]})"
    return ""
