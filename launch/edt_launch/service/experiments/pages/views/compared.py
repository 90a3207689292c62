"""What the page of an experiment shows of runs beside each other."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from edt_launch.service.files.service import MAX_VALUES
from edt_launch.service.jobs.pages.views.job_tabs.monitor import SMOOTH, X_AXES
from edt_launch.service.web import wording

Json = Mapping[str, Any]

MAX_CURVES = 20
MAX_TOLD = 2
"""Parameters that label a curve."""

POINTS = 1000
"""Points of a run, which its metrics share."""

FIRST = 6
"""Metrics that are drawn as long as none is chosen."""


def compared(
    comparison: Json, names: Sequence[str], metrics: Sequence[str], x: str, chosen: Collection[str]
) -> dict[str, Any]:
    """Runs that REST has compared, beside each other.

    `names` are of the values of all runs, `metrics` are those that are chosen to be drawn, each in a panel,
    and `chosen` are ids of runs.
    """
    error = ""
    if len(chosen) > MAX_CURVES:
        error = f"{len(chosen)} runs are chosen, but at most {MAX_CURVES} can be compared: choose fewer."
    elif len(metrics) > MAX_VALUES:
        error = f"{len(metrics)} metrics are chosen, but at most {MAX_VALUES} can be drawn: choose fewer."
    runs = comparison["runs"]
    reported = {run["job"]: run["values"].keys() for run in runs if run["state"] != "deleted"}
    able = [job for job, values in reported.items() if not values.isdisjoint(metrics or names)]
    newest = able[:MAX_CURVES]
    known = set().union(*(reported[job] for job in newest))
    metrics = metrics or [name for name in names if name in known][:FIRST]
    panels = [name for name in metrics if name in known]
    drawn = [job for job in newest if not reported[job].isdisjoint(panels)]
    query = urlencode({"jobs": ",".join(drawn), "name": panels, "points": POINTS}, doseq=True)
    differing = [
        (one["name"], [_shown(one["name"], value) for value in one["values"]])
        for one in comparison["parameters"]
    ]
    jobs = [run["job"] or run["id"] for run in runs]
    is_named = all(run["job_name"] in (None, run["name"]) for run in runs)  # as their definitions
    telling = [one for one in differing if not is_named or one[0] != "training definition"]
    told = [(name.lstrip("-$"), values) for name, values in telling[:MAX_TOLD]]
    labels = {
        job: ", ".join(f"{name} {wording.short(values[at])}" for name, values in told)
        for at, job in enumerate(jobs)
    }
    return {
        "jobs": jobs,
        "differing": differing,
        "data": f"/api/v1/series?{query}" if drawn and not error else "",
        "labels": json.dumps(labels),
        "metrics": [(name, name in metrics) for name in dict.fromkeys([*names, *metrics])],
        "missing": [name for name in metrics if name not in known],
        "x": x,
        "axes": X_AXES,
        "smooths": SMOOTH,
        "left_out": max(0, len(able) - MAX_CURVES),
        "chosen": chosen,
        "error": error,
    }


def _shown(name: str, value: str | None) -> str:
    """A parameter's value; an option that was not given has the program's default."""
    return value if value is not None else "default" if name.startswith("-") else wording.NONE
