"""What would change, in sentences."""

from collections.abc import Mapping, Sequence
from typing import Any

MAX_CHANGES = 8
"""Jobs that are named."""


def sentences(changes: Sequence[Mapping[str, Any]] | None) -> list[str]:
    """Changes of jobs' sizes in sentences; None: nobody can say."""
    if changes is None:
        return []
    said = [
        f"{one['name'] or one['job']} of {one['owner']} goes from {one['from']} to {one['to']}."
        for one in changes[:MAX_CHANGES]
    ]
    more = len(changes) - len(said)
    return [*said, *([f"So do {more} more."] if more else [])] or ["No other job would change now."]


def of_starting(changes: Sequence[Mapping[str, Any]]) -> list[str]:
    """The same, where those without an id are jobs that would be started."""
    own = [one for one in changes if one["job"] is None]
    said = [
        f"{one['name']} starts at once with {one['to']}." if one["to"] else f"{one['name']} {one['reason']}."
        for one in own
    ]
    return said + sentences([one for one in changes if one["job"] is not None])
