"""The form of a project."""

from collections.abc import Mapping
from typing import Any

from edt_launch.service.web.asking import Field, Question

Json = Mapping[str, Any]

LABELS = {"name": "name", "description": "description"}
"""What is compared if two people have changed a project."""


def values(project: Json) -> dict[str, str]:
    """What the form begins with."""
    return {name: project[name] for name in LABELS}


def question(given: Mapping[str, str], project: Json | None = None, seen: int | None = None) -> Question:
    """The form with what it was sent with: of a new project, or of one in a version that was seen."""
    fields = [
        Field("name", "Name", given["name"], False, is_required=True),
        Field("description", "Description", given["description"], False),
    ]
    if project is None:
        return Question("New project", "", (), "/experiments", fields, button="Create")
    hidden = [("version", "" if seen is None else str(seen))]
    back = f"/experiments/projects/{project['id']}"
    return Question("Edit", project["name"], (), back, fields, hidden, button="Save")
