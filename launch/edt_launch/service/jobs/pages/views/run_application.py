"""What the form shows by which an application is run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from edt_launch.service.web.asking import Field

LABELS: Mapping[str, str] = {
    "name": "Name",
    "command": "Command",
    "code_of": "Or the files of your job with the id",
    "path": "Or a folder on the service's machine",
    "min": "Workers at least",
    "max": "Workers at most",
    "priority": "Priority (higher ones are served first)",
}

NUMBERS = frozenset({"min", "max", "priority"})

FIRST: Mapping[str, str] = MappingProxyType({"min": "1", "max": "1", "priority": "0"})
"""What the form begins with."""


@dataclass(frozen=True)
class RunView:
    """The form: fields before the file and after it; `error` is what was wrong, empty if nothing was."""

    before: Sequence[Field]
    after: Sequence[Field]
    key: str
    error: str


def run_view(key: str, given: Mapping[str, str] = FIRST, error: str = "", *, is_admin: bool) -> RunView:
    """The form with what it was sent with; only administrators name folders."""
    fields = [
        Field(name, label, given.get(name, ""), name in NUMBERS, is_required=name == "command")
        for name, label in LABELS.items()
        if is_admin or name != "path"
    ]
    return RunView(fields[:2], fields[2:], key, error)
