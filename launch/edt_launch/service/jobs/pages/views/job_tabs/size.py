"""Why a job has its size."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edt_launch.service.web import wording

Json = Mapping[str, Any]


@dataclass(frozen=True)
class SharePathRow:
    """A node of the owners' tree, its share in devices, and that of the whole in percent."""

    name: str
    share: str
    percent: float


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
    """Why a job has its size: what binds, what would change that; of a job that waits, when it starts."""

    lines: Sequence[str]
    binds: str
    change: str
    start: str
    path: Sequence[SharePathRow]


def size(why: Json) -> Size:
    """The tab, from REST's reasons."""
    most = max((node["share"] for node in why["path"]), default=0.0)
    nodes = [
        SharePathRow(
            node["node"] or "everybody",
            wording.number(node["share"], 2),
            round(100 * node["share"] / most, 1) if most else 0.0,
        )
        for node in why["path"]
    ]
    start = why["start"]
    told = f"It {start['text']}." if start else ""
    apart = (why["change"], told)
    lines = [line for line in why["lines"] if line not in apart]
    return Size(lines, BINDINGS.get(why["binding"], ""), why["change"], told, nodes)
