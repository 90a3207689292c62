"""What a job has made, and its checkpoints."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import quote

Json = Mapping[str, Any]

STATES: Mapping[str, str] = {
    "complete": "complete",
    "whole": "whole: its checksums are right",
    "damaged": "damaged: it cannot be loaded",
    "unknown": "nothing says what it should be",
}
"""How checkpoints are, in words."""


@dataclass(frozen=True)
class Results:
    """What a job has made.

    Attributes:
        final: the address of its model, or of an archive of it; empty without one.
        folders: names, and the files in each, as REST shows them.
        is_complete: whether these are all files.
        checkpoints: as REST shows them, the latest first.
        checked: how those are that were checked, by their names.
    """

    final: str
    folders: Sequence[tuple[str, Sequence[Json]]]
    is_complete: bool
    checkpoints: Sequence[Json]
    checked: Mapping[str, str]
    states: ClassVar[Mapping[str, str]] = STATES


def results(job_id: str, made: Json, checkpoints: Sequence[Json], checked: Mapping[str, str]) -> Results:
    """The tab, from REST's lists, and how checkpoints are that were checked."""
    rest = f"/api/v1/jobs/{job_id}"
    by_folder: dict[str, list[Json]] = {}
    for one in sorted(made["files"], key=lambda file: natural(file["name"])):
        by_folder.setdefault(one["name"].rpartition("/")[0], []).append(one)
    model = [one["name"] for one in made["files"] if one["name"].startswith("model/")]
    archive = f"{rest}/results?name=model" if model else ""
    return Results(
        f"{rest}/files/{quote(model[0])}" if len(model) == 1 else archive,
        sorted(by_folder.items(), key=_order),
        made["complete"],
        checkpoints[::-1],
        checked,
    )


def natural(name: str) -> list[tuple[int, str]]:
    """The order in which people expect names: numbers by their values."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", name) if part]


def _order(folder: tuple[str, object]) -> tuple[bool, list[tuple[int, str]]]:
    """The model first: it is what people look for."""
    return folder[0].partition("/")[0] != "model", natural(folder[0])
