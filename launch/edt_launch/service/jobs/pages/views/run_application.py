"""What the form shows by which an application is run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from edt_launch.service.web.asking import Field

LABELS: Mapping[str, str] = {
    "name": "Name",
    "command": "Command",
    "code_of": "Or the files of your job (id)",
    "path": "Or a folder on the service's machine",
    "min": "Minimum workers",
    "max": "Maximum workers",
    "priority": "Priority (higher first)",
}

ADVANCED: Mapping[str, str] = {
    "time": "Time limit: minutes, HH:MM:SS or D-HH:MM",
    "begin": "Start not before: 2h, 22:30 or 2026-03-01T12:30, UTC",
    "after": "After these jobs succeeded (ids)",
    "array": "Array: 1-20 or 1-20%4",
    "grace": "Seconds from SIGTERM to SIGKILL (default: 30)",
}

SWITCHES: Mapping[str, str] = {
    "restartable": "Restartable: may begin again, even if it cannot save its work",
    "no_preempt": "Never preempted below its minimum once it runs",
}

TEXTS = (*LABELS, *ADVANCED, *SWITCHES)
"""Names of all fields of the form, but for the file."""

NUMBERS = frozenset({"min", "max", "priority", "grace"})

OF_JOBS = frozenset({"code_of", "after"})
"""Fields that name jobs."""

FIRST: Mapping[str, str] = MappingProxyType({"min": "1", "max": "1", "priority": "0"})
"""What the form begins with."""


@dataclass(frozen=True)
class RunView:
    """The form: fields before the file, after it, and under Advanced, with the switches that are on.

    `error` is what was wrong, empty if nothing was.
    """

    before: Sequence[Field]
    after: Sequence[Field]
    advanced: Sequence[Field]
    switches: Sequence[tuple[str, str, bool]]
    key: str
    error: str = ""


def run_view(
    key: str, given: Mapping[str, str], jobs: Sequence[tuple[str, str]] = (), *, is_admin: bool
) -> RunView:
    """The form with what it was sent with; only administrators name folders; `jobs` are suggested."""

    def field(name: str, label: str) -> Field:
        suggested = jobs if name in OF_JOBS else ()
        return Field(
            name, label, given.get(name, ""), name in NUMBERS,
            is_required=name == "command", suggested=suggested,
        )  # fmt: skip

    fields = [field(name, label) for name, label in LABELS.items() if is_admin or name != "path"]
    advanced = [field(name, label) for name, label in ADVANCED.items()]
    switches = [(name, label, bool(given.get(name))) for name, label in SWITCHES.items()]
    return RunView(fields[:2], fields[2:], advanced, switches, key)
