"""Plots of what a job has reported, and the table that says the same."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from edt_launch.core.text.durations import duration
from edt_launch.service.experiments.comparison import objective_of
from edt_launch.service.experiments.searches.spec import Objective
from edt_launch.service.web import wording

Json = Mapping[str, Any]

MAX_ROWS = 100
"""Rows of the table beside the plots."""

POINTS = 600
"""Points of a plot."""

X_AXES: Mapping[str, str] = {"step": "step", "training": "training time", "clock": "clock"}
"""What plots may be over."""

TOTAL = "total_steps"
"""What a job reports of its progress alone: it is not offered."""

SMOOTH = ("0", "0.6", "0.9", "0.99")
"""Weights of what came before, in a smoothed curve."""


@dataclass(frozen=True)
class Value:
    """A reported value, before thinning; `best` is the better of `lowest` and `highest`, as its name says."""

    name: str
    is_chosen: bool
    lowest: str
    highest: str
    last: str
    missing: int
    best: str


@dataclass(frozen=True)
class Monitor:
    """Plots, and the table that says the same; `columns` are the values of its `rows`."""

    values: Sequence[Value]
    x: str
    axes: Mapping[str, str]
    is_log: bool
    smooth: str
    smooths: Sequence[str]
    data: str
    csv: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    @property
    def choices(self) -> Sequence[tuple[str, bool]]:
        """The names of values that can be plotted, and whether they are."""
        return [(value.name, value.is_chosen) for value in self.values]


def monitor(
    job_id: str, course: Json, chosen: Sequence[str], x: str, *, is_log: bool, smooth: str
) -> Monitor:
    """The tab, from a job's course; `chosen` are the values that are plotted."""
    about = course["about"]
    names = list(dict.fromkeys([*chosen, *(name for name in course["names"] if name != TOTAL)]))
    query = urlencode([("name", name) for name in chosen])
    data = f"/api/v1/jobs/{job_id}/metrics?{query}&points={POINTS}"
    total = len(course["time"])
    shown = sorted({*range(0, total, max(1, -(-total // MAX_ROWS))), *([total - 1] if total else [])})
    return Monitor(
        values=[_value(name, about.get(name), name in chosen) for name in names],
        x=x,
        axes=X_AXES,
        is_log=is_log,
        smooth=smooth,
        smooths=SMOOTH,
        data=data,
        csv=f"/jobs/{job_id}/series.csv?{query}",
        columns=chosen,
        rows=[
            (
                str(course["step"][at]),
                duration(course["training"][at]),
                wording.moment(course["time"][at]),
                str(course["size"][at]),
                wording.precise(course["throughput"][at]),
                *(wording.precise(course["values"][name][at]) for name in chosen),
            )
            for at in shown
        ],
    )


def _value(name: str, about: Json | None, is_chosen: bool) -> Value:
    lowest, highest, last = (
        wording.precise(about[one] if about else None) for one in ("lowest", "highest", "last")
    )
    best = "lowest" if objective_of(name) is Objective.MINIMIZE else "highest"
    return Value(name, is_chosen, lowest, highest, last, about["missing"] if about else 0, best)
