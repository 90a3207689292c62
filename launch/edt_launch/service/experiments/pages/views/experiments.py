"""What the pages of projects and experiments show."""

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from edt_launch.core.history.failure_text import cause
from edt_launch.core.text.durations import duration
from edt_launch.service.cluster.pages.views.pool import Tile
from edt_launch.service.experiments.comparison import ComparedParameter
from edt_launch.service.experiments.pages.views.compared import Compared
from edt_launch.service.experiments.pages.views.run_table import (
    USUAL,
    RunTable,
    RunTableQuery,
    TableRun,
    precise,
    run_table,
)
from edt_launch.service.experiments.pages.views.searches import TABS as SEARCH_TABS
from edt_launch.service.experiments.pages.views.searches import tabs
from edt_launch.service.experiments.records import Role
from edt_launch.service.experiments.runs import Summary
from edt_launch.service.jobs.pages.views.jobs import MAX_WHY
from edt_launch.service.jobs.states import State
from edt_launch.service.web import wording
from edt_launch.service.web.asking import Field, Question
from edt_launch.service.web.crumbs import EXPERIMENTS, Crumb, Tab
from edt_launch.service.web.crumbs import project as above

Json = Mapping[str, Any]

TABS = {"runs": "Training Runs", "compare": "Compare Runs", "overview": "Overview"}
MAX_METRICS = 20
"""Values that tables of runs have columns for."""


@dataclass(frozen=True)
class RunRow:
    """A run, in words; `values` are of the metrics, each with whether it is the best, `why` why it failed.

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
    tags: Sequence[str]
    comment: str
    values: Sequence[tuple[str, bool]]
    why: str
    is_deleted: bool
    has_results: bool


@dataclass(frozen=True)
class Pages:
    """Lists of a page that are each read page by page.

    Attributes:
        path: of the page.
        places: by the names in the address, where the lists begin; 0: at the newest.
        nexts: where they go on; None at the end.
    """

    path: str
    places: Mapping[str, int | str]
    nexts: Mapping[str, int | None]

    @property
    def address(self) -> str:
        """Of the page as it is."""
        return self.address_of(self.places)

    def more(self, name: str) -> str:
        """The address at which the list of a name goes on; empty at its end."""
        following = self.nexts[name]
        return self.address_of({**self.places, name: following}) if following else ""

    def newest(self, name: str) -> str:
        """The address at which it begins; empty if it does."""
        return self.address_of({**self.places, name: 0}) if self.places[name] else ""

    def address_of(self, places: Mapping[str, int | str]) -> str:
        """The page with its lists from there."""
        query = urlencode({name: place for name, place in places.items() if place})
        return f"{self.path}?{query}" if query else self.path


@dataclass(frozen=True)
class ExperimentQuery:
    """What an address asks of an experiment's page: a tab, its table, a page of runs, how they are drawn."""

    tab: str = "runs"
    table: RunTableQuery = USUAL
    before: int | None = None
    chosen: Sequence[str] = ()
    metric: str = ""
    x: str = "step"
    smooth: str = "0"
    is_log: bool = False


@dataclass(frozen=True)
class ExperimentView:
    """An experiment; `table` and `compared` are None on other tabs.

    Attributes:
        runs: a page of them; on the tab of the table, those of `table`.
        without_column: how many values have no column, as there are too many.
        best_over: which runs the best is one of, if these are not all; empty if they are.
        elsewhere: values whose best run is on another page: the value's name, the best value, its job, and
            whether that was deleted.
        newest: address of the newest runs, unless these are shown; empty then.
        older: address of the runs before those that are shown; empty if there are none.
    """

    experiment: Json
    may_edit: bool
    actions: Sequence[tuple[str, str]]
    tab: str
    tabs: Sequence[Tab]
    tiles: Sequence[Tile]
    crumbs: Sequence[Crumb]
    asked: ExperimentQuery
    metrics: Sequence[str]
    without_column: int
    best_over: str
    elsewhere: Sequence[tuple[str, str, str | None, bool]]
    runs: Sequence[RunRow]
    table: RunTable | None
    compared: Compared | None
    address: str
    before: int | None
    newest: str
    older: str

    @property
    def goes_on(self) -> bool:
        """Whether trials of a search are about to change it."""
        return any(name == "stop" for name, _ in self.actions)

    @property
    def command(self) -> str:
        """The global execution command, as it is written."""
        return shlex.join(self.experiment["command"])


def experiment_view(
    experiment: Json,
    project: Json | None,
    runs: Sequence[Json],
    summary: Summary,
    asked: ExperimentQuery,
    following: int | None,
    compared: Compared | None,
    parameters: Sequence[ComparedParameter],
    *,
    viewer: str | None,
    actions: Sequence[tuple[str, str]] = (),
) -> ExperimentView:
    """The page of an experiment, from what REST answers of it and its project.

    Args:
        experiment, project: as REST answers them.
        runs: the same, of a page of them; for the table, those of `summary`, from which it takes a page.
        summary: of the newest runs.
        asked: by the address.
        following: the `before` of the next page.
        compared: the runs beside each other, on that tab.
        parameters: that differ among `runs`, for the table.
        viewer: who looks; None: an administrator.
        actions: what can be done with a search, which has no project.
    """
    best = {
        one.name: None if one.best is None else summary.runs[one.best].run.id
        for one in summary.metrics[:MAX_METRICS]
    }
    address = f"/experiments/{experiment['id']}"
    page = f"{address}?tab={asked.tab}"
    curves = {"metric": asked.metric, "x": asked.x, "smooth": asked.smooth, "run": asked.chosen}
    drawn = {**curves, **({"log": "1"} if asked.is_log else {})} if asked.tab == "compare" else {}
    before = {"before": asked.before} if asked.before else {}
    table, page_of_runs = None, runs
    if asked.tab == "runs":
        known = [
            TableRun(run, {one.name: one.values[place] for one in parameters})
            for place, run in enumerate(runs)
        ]
        table = run_table(address, asked.table, known, best, [one.name for one in parameters])
        page_of_runs = [one.run for one in table.runs]
    reasons = _reasons(summary, {run["id"] for run in page_of_runs}, viewer)
    return ExperimentView(
        experiment,
        project is not None and may_edit(project),
        actions,
        asked.tab,
        tabs(experiment["id"], asked.tab, SEARCH_TABS if project is None else TABS),
        _tiles(experiment, summary),
        [EXPERIMENTS] if project is None else above(project["id"], project["name"]),
        asked,
        list(best),
        len(summary.names) - len(best),
        _partly(experiment, summary),
        _elsewhere(summary, {run["id"] for run in runs}),
        [_run(one, best, reasons.get(one["id"], ""), viewer) for one in page_of_runs],
        table,
        compared,
        table.address
        if table
        else f"{address}?{urlencode({'tab': asked.tab, **before, **drawn}, doseq=True)}",
        asked.before,
        page if asked.before else "",
        f"{page}&before={following}" if following else "",
    )


def with_line(definition: Json) -> Json:
    """A training definition and its `line`, which is its command as it is written."""
    return {**definition, "line": shlex.join(definition["command"])}


def _tiles(experiment: Json, summary: Summary) -> list[Tile]:
    partly = _partly(experiment, summary)
    return [
        Tile("Runs in total", str(experiment["runs"])),
        Tile(f"Total running time{partly}", duration(summary.seconds)),
        Tile(f"GPU-hours{partly}", f"{summary.hours:.2f}"),
    ]


def _partly(experiment: Json, summary: Summary) -> str:
    return f" of the newest {summary.number} runs" if summary.number < experiment["runs"] else ""


def _elsewhere(summary: Summary, shown: Collection[str]) -> list[tuple[str, str, str | None, bool]]:
    """Values whose best run is none of those that are shown."""
    found: list[tuple[str, str, str | None, bool]] = []
    for one in summary.metrics[:MAX_METRICS]:
        best = None if one.best is None else summary.runs[one.best]
        if best is not None and best.run.id not in shown:
            found.append((one.name, precise(best.outcome.last(one.name)), best.run.job, best.job is None))
    return found


def may_edit(project: Json) -> bool:
    """Whether who looks may change what is in a project, and start runs."""
    return Role(project["role"]).rank >= Role.EDITOR.rank


def _reasons(summary: Summary, ids: Collection[str], viewer: str | None) -> dict[str, str]:
    """Why runs of these ids failed, or have no job, as far as the viewer may know that."""
    runs = [one for one in summary.runs if one.run.id in ids]
    failed = {
        one.run.id: cause(one.job.failure)
        for one in runs
        if one.job is not None and one.job.state is State.FAILED and viewer in (None, one.job.owner)
    }
    without_job = {
        one.run.id: cause(one.run.reason)
        for one in runs
        if one.run.job is None and viewer in (None, one.run.owner)
    }
    return {run: why[:MAX_WHY] for run, why in (failed | without_job).items()}


def _run(run: Json, best: Mapping[str, str | None], why: str, viewer: str | None) -> RunRow:
    is_deleted = run["job_name"] is None
    lasts = {name: about["last"] for name, about in run["values"].items()}
    bounds = wording.bounds(run["min"], run["max"], None)
    size = f"{run['size'] or 0} of {bounds}"
    if run["ended_as"] and run["seconds"]:
        size = f"{run['hours'] * 3600 / run['seconds']:.1f} of {bounds} on average"
    return RunRow(
        run["id"],
        run["job_name"] or run["name"],
        run["job"] or run["id"],
        run["owner"],
        str(run["state"]),
        run["created"],
        duration(run["seconds"]),
        f"{run['hours']:.2f}",
        size,
        run["tags"],
        run["comment"],
        [(precise(lasts.get(name)), run["id"] == id_) for name, id_ in best.items()],
        why,
        is_deleted,
        not is_deleted and viewer in (None, run["owner"]),
    )


def member_question(project: Json, users: Iterable[str]) -> Question:
    """The form by which somebody becomes a member, or gets another role."""
    address = f"/experiments/projects/{project['id']}"
    roles = [(str(role), str(role)) for role in Role] + [("", "Remove from project")]
    others = [(name, name) for name in users if name != project["owner"]]
    fields = [
        Field("user", "User", "", False, others),
        Field("role", "Role", str(Role.EDITOR), False, roles),
    ]
    return Question("Members of", project["name"], (), address, fields, button="Save")


def leave_question(project: Json) -> Question:
    """The question before somebody leaves a project that they are a member of."""
    address = f"/experiments/projects/{project['id']}"
    effect = [
        f"You see what is in it no more, until {project['owner']} adds you again. Your jobs stay yours."
    ]
    return Question("Leave", project["name"], effect, address)
