"""What the pages of projects and experiments show."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from edt_launch.core.text.durations import duration
from edt_launch.service.cluster.pages.views.pool import Tile
from edt_launch.service.experiments.pages.views.run_table import RunTableQuery
from edt_launch.service.experiments.pages.views.searches import TABS as SEARCH_TABS
from edt_launch.service.experiments.pages.views.searches import tabs
from edt_launch.service.experiments.records import Role
from edt_launch.service.experiments.runs import Summary
from edt_launch.service.web.crumbs import EXPERIMENTS
from edt_launch.service.web.crumbs import project as above

Json = Mapping[str, Any]

TABS = {"runs": "Training Runs", "compare": "Compare Runs", "overview": "Overview"}


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

    tab: str
    table: RunTableQuery
    before: int | None
    chosen: Sequence[str]
    metrics: Sequence[str]
    x: str
    smooth: str
    is_log: bool

    def address(self, path: str) -> str:
        """The address of the tab, of the table but for what it asks of that, on the page of that address."""
        asked: dict[str, Any] = {"tab": self.tab, "before": self.before}
        if self.tab == "compare":
            asked |= {"metric": self.metrics, "x": self.x, "smooth": self.smooth, "run": self.chosen}
            asked |= {"log": "1" if self.is_log else None}
        given = {name: value for name, value in asked.items() if value is not None}
        return f"{path}?{urlencode(given, doseq=True)}"


def experiment_view(
    experiment: Json, project: Json | None, summary: Summary, asked: ExperimentQuery, actions: Json
) -> dict[str, Any]:
    """What every tab of an experiment shows, from what REST answers of it and its project.

    `actions` are what can be done with a search, which has no project.
    """
    figures = summary.figures.values()
    return {
        "experiment": experiment,
        "may_edit": project is not None and may_edit(project),
        "actions": actions,
        "goes_on": "stop" in actions,
        "tab": asked.tab,
        "tabs": tabs(experiment["id"], asked.tab, SEARCH_TABS if project is None else TABS),
        "tiles": [
            Tile("Runs in total", str(len(figures))),
            Tile("Total running time", duration(sum(one.seconds for one in figures))),
            Tile("GPU-hours", f"{sum(one.hours for one in figures):.2f}"),
        ],
        "crumbs": [EXPERIMENTS] if project is None else above(project["id"], project["name"]),
        "asked": asked,
        "metrics": list(summary.best),
        "without_column": len(summary.names) - len(summary.best),
        "address": asked.address(f"/experiments/{experiment['id']}"),
    }


def with_line(thing: Json) -> dict[str, Any]:
    """A training definition, or an experiment, and its `line`: its command as it is written."""
    return {**thing, "line": shlex.join(thing["command"])}


def may_edit(project: Json) -> bool:
    """Whether who looks may change what is in a project, and start runs."""
    return Role(project["role"]).rank >= Role.EDITOR.rank
