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


def question(project: Json, given: Mapping[str, str], seen: int | None, error: str = "") -> Question:
    """The form with what it was sent with, of a version that was seen."""
    address = f"/experiments/projects/{project['id']}"
    fields = [
        Field("name", "Name", given["name"], False, is_required=True),
        Field("description", "Description", given["description"], False),
    ]
    hidden = [("version", "" if seen is None else str(seen))]
    return Question(
        "Edit", project["name"], (), f"{address}/edit", address, fields, hidden, error, button="Save"
    )
