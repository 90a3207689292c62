"""What the page of an experiment shows of runs beside each other."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from edt_launch.service.web import wording

Json = Mapping[str, Any]

AXES = {"step": "step", "training": "training time", "clock": "clock"}
MAX_CURVES = 20
MAX_TOLD = 2
"""Parameters that label a curve."""


@dataclass(frozen=True)
class Compared:
    """Runs beside each other.

    Attributes:
        jobs: of the runs, in the order of the values that differ.
        differing: names of parameters that are not the same in all, and the value of each run.
        data: address of the curves; empty without any.
        metric: the value that is drawn.
        names: of all values.
        left_out: how many runs have curves that are not drawn.
        labels: of the curves by their jobs: what differs, as JSON.
        chosen: ids of the runs that were chosen; empty if none was.
        error: why these are not compared; empty if they are.
    """

    jobs: Sequence[str]
    differing: Sequence[tuple[str, Sequence[str]]]
    data: str
    labels: str
    metric: str
    names: Sequence[str]
    x: str
    left_out: int
    chosen: Collection[str]
    error: str


def compared(
    comparison: Json, names: Sequence[str], metric: str, x: str, chosen: Collection[str], error: str
) -> Compared:
    """Those that REST has compared; `names` are of the values of all runs."""
    shown = metric or (names[0] if names else "loss")
    jobs = [run["job"] for run in comparison["runs"] if run["state"] != "deleted" and shown in run["values"]]
    query = urlencode({"jobs": ",".join(jobs[:MAX_CURVES]), "name": shown, "points": 500})
    differing = [
        (one["name"], [_shown(one["name"], value) for value in one["values"]])
        for one in comparison["parameters"]
    ]
    return Compared(
        [run["job"] or run["id"] for run in comparison["runs"]],
        differing,
        f"/api/v1/series?{query}" if jobs and not error else "",
        json.dumps(_labels([run["job"] or run["id"] for run in comparison["runs"]], differing)),
        shown,
        names,
        x,
        max(0, len(jobs) - MAX_CURVES),
        chosen,
        error,
    )


def _shown(name: str, value: str | None) -> str:
    """A parameter's value; an option that was not given has the program's default."""
    return value if value is not None else "default" if name.startswith("-") else wording.NONE


def _labels(jobs: Sequence[str], differing: Sequence[tuple[str, Sequence[str]]]) -> dict[str, str]:
    """What tells the runs apart, by their jobs; empty if nothing does."""
    told = [(name.lstrip("-$"), values) for name, values in differing[:MAX_TOLD]]
    return {job: ", ".join(f"{name} {values[at]}" for name, values in told) for at, job in enumerate(jobs)}


def too_many(chosen: Sequence[str]) -> str:
    """Why so many runs cannot be compared; empty if they can."""
    if len(chosen) <= MAX_CURVES:
        return ""
    return f"{len(chosen)} runs are chosen, but at most {MAX_CURVES} can be compared: choose fewer."
