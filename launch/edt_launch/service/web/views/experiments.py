"""What the pages of projects and experiments show."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from edt_launch.service.database.project_records import Role
from edt_launch.service.states import LIVE, State
from edt_launch.service.web import wording
from edt_launch.service.web.views.asking import Field, Question

Json = Mapping[str, Any]

TABS = {"runs": "Training Runs", "compare": "Compare Runs", "overview": "Overview"}
AXES = {"step": "step", "training": "training time", "clock": "clock"}
MOST_METRICS = 4
"""Values that tables of runs have columns for."""
MOST_CURVES = 20


@dataclass(frozen=True)
class Tab:
    """A part of a page, and whether it is the one that is shown."""

    name: str
    address: str
    is_chosen: bool


@dataclass(frozen=True)
class Run:
    """A run, in words; `values` are of the metrics, each with whether it is the best.

    `has_results` says whether whoever looks may fetch its files.
    """

    id: str
    name: str
    job: str
    owner: str
    state: str
    created: float
    duration: str
    hours: str
    size: str
    loss: str
    values: Sequence[tuple[str, bool]]
    is_deleted: bool
    has_results: bool


@dataclass(frozen=True)
class Compared:
    """Runs beside each other.

    Attributes:
        jobs: of the runs, in the order of the values that differ.
        differing: names of parameters that are not the same in all, and the value of each run.
        data: address of the curves; empty without any.
        metric: the value that is drawn.
        names: of all values.
    """

    jobs: Sequence[str]
    differing: Sequence[tuple[str, Sequence[str]]]
    data: str
    metric: str
    names: Sequence[str]
    x: str
    left_out: int


@dataclass(frozen=True)
class ExperimentView:
    """An experiment and its runs; `compared` is None on other tabs."""

    experiment: Json
    project: Json
    may_edit: bool
    tab: str
    tabs: Sequence[Tab]
    tiles: Sequence[tuple[str, str]]
    metrics: Sequence[str]
    queued: Sequence[Run]
    running: Sequence[Run]
    completed: Sequence[Run]
    compared: Compared | None
    address: str

    @property
    def command(self) -> str:
        """The global execution command, as it is written."""
        return shlex.join(self.experiment["command"])


def experiment_view(
    experiment: Json, project: Json, comparison: Json, tab: str, metric: str, x: str, *, viewer: str | None
) -> ExperimentView:
    """The page of an experiment, from what REST answers of it, its project, and its newest 100 runs.

    `viewer` is who looks; None: an administrator.
    """
    metrics = comparison["metrics"][:MOST_METRICS]
    best = {one["name"]: one["best"] for one in metrics}
    runs = [_run(one, best, viewer) for one in comparison["runs"]]
    live = {str(state) for state in LIVE}
    seconds = sum(one["seconds"] for one in comparison["runs"])
    hours = sum(one["hours"] for one in comparison["runs"])
    address = f"/experiments/{experiment['id']}"
    return ExperimentView(
        experiment,
        project,
        may_edit(project),
        tab,
        [Tab(name, f"{address}?tab={key}", key == tab) for key, name in TABS.items()],
        [
            ("Runs in total", str(experiment["runs"])),
            ("Total running time", wording.duration(seconds)),
            ("GPU-hours", f"{hours:.2f}"),
        ],
        list(best),
        [run for run in runs if run.state == State.QUEUED],
        [run for run in runs if run.state in live - {State.QUEUED}],
        [run for run in runs if run.state not in live],
        _compared(comparison, metric, x) if tab == "compare" else None,
        f"{address}?{urlencode({'tab': tab, 'metric': metric, 'x': x})}",
    )


def with_line(definition: Json) -> Json:
    """A training definition and its `line`, which is its command as it is written."""
    return {**definition, "line": shlex.join(definition["command"])}


def may_edit(project: Json) -> bool:
    """Whether who looks may change what is in a project, and start runs."""
    return Role(project["role"]).rank >= Role.EDITOR.rank


def _run(run: Json, best: Mapping[str, str | None], viewer: str | None) -> Run:
    is_deleted = run["state"] == "deleted"
    lasts = {name: about["last"] for name, about in run["values"].items()}
    size = "-" if run["size"] is None else str(run["size"])
    return Run(
        run["id"],
        run["job_name"] or run["name"],
        run["job"],
        run["owner"],
        str(run["state"]),
        run["created"],
        wording.duration(run["seconds"]),
        f"{run['hours']:.2f}",
        f"{size} of {wording.bounds(run['min'], run['max'], None)}",
        precise(lasts.get("loss")),
        [(precise(lasts.get(name)), run["id"] == id_) for name, id_ in best.items()],
        is_deleted,
        not is_deleted and viewer in (None, run["owner"]),
    )


def _compared(comparison: Json, metric: str, x: str) -> Compared:
    names = [one["name"] for one in comparison["metrics"]]
    chosen = metric or (names[0] if names else "loss")
    jobs = [run["job"] for run in comparison["runs"] if run["state"] != "deleted" and chosen in run["values"]]
    query = urlencode({"jobs": ",".join(jobs[:MOST_CURVES]), "name": chosen, "points": 500})
    differing = [
        (one["name"], [wording.NONE if value is None else value for value in one["values"]])
        for one in comparison["parameters"]
    ]
    data = f"/api/v1/series?{query}" if jobs else ""
    return Compared(
        [run["job"] for run in comparison["runs"]],
        differing,
        data,
        chosen,
        names,
        x,
        max(0, len(jobs) - MOST_CURVES),
    )


def precise(value: float | None) -> str:
    """A value that was reported."""
    return wording.NONE if value is None else f"{value:.5g}"


def project_question(given: Mapping[str, str], error: str = "") -> Question:
    """The form of a new project."""
    fields = [Field(name, name.capitalize(), given.get(name, ""), False) for name in ("name", "description")]
    return Question(
        "New project",
        "",
        (),
        "/experiments/new-project",
        "/experiments",
        fields,
        error=error,
        button="Create",
    )


def member_question(project: Json, users: Iterable[str], error: str = "") -> Question:
    """The form by which somebody becomes a member, or gets another role."""
    address = f"/experiments/projects/{project['id']}"
    roles = [(str(role), str(role)) for role in Role] + [("", "no member any more")]
    fields = [
        Field("user", "User", "", False, [(name, name) for name in users]),
        Field("role", "Role", str(Role.EDITOR), False, roles),
    ]
    return Question(
        "Members of", project["name"], (), f"{address}/members", address, fields, error=error, button="Save"
    )


def start_question(
    verb: str, name: str, lines: Sequence[str], address: str, back: str, error: str = ""
) -> Question:
    """The question before runs are started; `lines` say what that does to whom."""
    return Question(verb, name, lines, address, back, error=error)


def save_question(run: Json, given: str, back: str, error: str = "") -> Question:
    """The form by which a run becomes a training definition."""
    fields = [Field("name", "Name of the training definition", given, False)]
    address = f"/experiments/runs/{run['id']}/save"
    return Question("Save definition of", run["name"], (), address, back, fields, error=error, button="Save")
