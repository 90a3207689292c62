"""Why a job has its size."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Json = Mapping[str, Any]


BINDINGS: Mapping[str | None, str] = {
    "min": "its minimum",
    "max": "its maximum",
    "speed": "that more workers do not make it faster",
    "share": "its fair share",
    "limit": "the limit of an owner",
    "tier": "jobs of a higher priority",
    "stability": "that a change now would cost more than it brings",
    "hand-over": "devices that are being handed over",
    "admission": "the jobs before it",
    "fragments": "the numbers of workers that it can run with",
    "kept": "that it cannot save its work",
}
"""What binds, in words, by the names of `allocator.model.Binding`."""


@dataclass(frozen=True)
class Size:
    """Why a job has its size.

    Attributes:
        binds: what keeps it from having another size.
        change: what would change that.
        start: when it starts, if it waits.
        path: nodes of the owners' tree as REST shows them; `most` is the largest of their shares.
    """

    lines: Sequence[str]
    binds: str
    change: str
    start: str
    path: Sequence[Json]
    most: float


def size(why: Json) -> Size:
    """The tab, from REST's reasons."""
    start = why["start"]
    told = f"It {start['text']}." if start else ""
    lines = [line for line in why["lines"] if line not in (why["change"], told)]
    most = max((node["share"] for node in why["path"]), default=0.0)
    return Size(lines, BINDINGS.get(why["binding"], ""), why["change"], told, why["path"], most)
