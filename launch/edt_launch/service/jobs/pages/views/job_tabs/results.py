"""What a job has made, and its checkpoints."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from edt_launch.core.text.byte_sizes import byte_size

Json = Mapping[str, Any]


@dataclass(frozen=True)
class File:
    """A file that a job has made; `depth` is how many folders it is in."""

    name: str
    size: str
    time: float
    address: str


@dataclass(frozen=True)
class Folder:
    """A folder, its own files, and the archive of all that is in it."""

    name: str
    archive: str
    files: Sequence[File]


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint on disk; `check` looks at its checksums, `clone` starts a job from it."""

    name: str
    step: int
    size: str
    time: float
    address: str
    state: str
    check: str
    clone: str


@dataclass(frozen=True)
class Results:
    """What a job has made; `final` is the address of its model, or of an archive of it; empty without one."""

    final: str
    folders: Sequence[Folder]
    is_complete: bool
    checkpoints: Sequence[Checkpoint]
    archive: str


STATES: Mapping[str, str] = {
    "complete": "complete",
    "whole": "whole: its checksums are right",
    "damaged": "damaged: it cannot be loaded",
    "unknown": "nothing says what it should be",
}
"""How checkpoints are, in words."""


def results(job_id: str, made: Json, checkpoints: Sequence[Json], checked: Mapping[str, str]) -> Results:
    """The tab, from REST's lists, and how checkpoints are that were checked."""
    rest = f"/api/v1/jobs/{job_id}"
    by_folder: dict[str, list[File]] = {}
    for one in sorted(made["files"], key=lambda file: natural(file["name"])):
        folder, _, name = one["name"].rpartition("/")
        address = f"{rest}/files/{quote(one['name'])}"
        by_folder.setdefault(folder, []).append(File(name, byte_size(one["size"]), one["time"], address))
    model = [one["name"] for one in made["files"] if one["name"].startswith("model/")]
    archive = f"{rest}/results?name=model" if model else ""
    return Results(
        f"{rest}/files/{quote(model[0])}" if len(model) == 1 else archive,
        [
            Folder(name or "/", f"{rest}/results?{urlencode({'name': name})}", files)
            for name, files in sorted(by_folder.items(), key=_order)
        ],
        made["complete"],
        [
            Checkpoint(
                one["name"],
                one["step"],
                byte_size(one["size"]),
                one["time"],
                one["url"],
                STATES[checked.get(one["name"], one["state"])],
                f"/jobs/{job_id}?tab=results&check={one['name']}",
                f"/jobs/{job_id}/clone?checkpoint={one['name']}",
            )
            for one in reversed(checkpoints)
        ],
        f"{rest}/results",
    )


def natural(name: str) -> list[tuple[int, str]]:
    """The order in which people expect names: numbers by their values."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", name) if part]


def _order(folder: tuple[str, object]) -> tuple[bool, list[tuple[int, str]]]:
    """The model first: it is what people look for."""
    return folder[0].partition("/")[0] != "model", natural(folder[0])
