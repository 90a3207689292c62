"""What the pages of searches show."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Query
from pydantic import StringConstraints

from edt_launch.core.text.durations import duration
from edt_launch.service.experiments.records import SEARCH_ENDS, SearchState, SearchWanted, TrialState
from edt_launch.service.names import PLAIN
from edt_launch.service.web import wording
from edt_launch.service.web.asking import Question
from edt_launch.service.web.crumbs import EXPERIMENTS, Tab

Json = Mapping[str, Any]

TABS: Mapping[str, str] = {
    "input": "Input",
    "best": "Best",
    "progress": "Progress",
    "runs": "Training Runs",
    "compare": "Compare Runs",
}
"""Names of the tabs of a search, as in the address and as shown."""

PAGE = 100
"""Trials of a page."""

BEST = 10
"""Trials that the tab of the best ones shows."""

METRIC, NUMBER, PARAMETER = "m", "n", "p."
"""What axes are called in addresses: of the metric, of the trial's number, and before names of parameters."""

AXES = 8
"""Parameters whose axes are shown unless others are chosen."""

MAX_AXES = 32
"""Parameters that have axes."""

FINITE = (SearchState.STOPPED, SearchState.FAILED, SearchState.WAITING)
"""States in which a search can be started again."""


def listed(experiment: Json, projects: Mapping[str, str], now: float) -> dict[str, Any]:
    """An experiment or a search as REST shows it, as lists have it; `projects` are names, by ids."""
    if (project := experiment["project"]) is not None:
        texts = dict.fromkeys(("failed", "metric", "best", "algorithm", "elapsed"), wording.NONE)
        above = (project, projects.get(project, project))
        return {**experiment, **texts, "project": above, "done": str(experiment["runs"]), "state": ""}
    counts, best = experiment["counts"], experiment["best"]
    end, start = experiment["ended"] or now, experiment["started"] or experiment["created"]
    return {
        **experiment,
        "done": _done(
            sum(counts.get(one, 0) for one in (TrialState.SUCCEEDED, TrialState.FAILED)), experiment
        ),
        "failed": counts.get(TrialState.FAILED, 0),
        "best": wording.precise(best.metric if best else None),
        "elapsed": duration(end - start),
    }


def _done(done: int, search: Json) -> str:
    """How many trials are done, of how many; before it has begun, that is not known exactly."""
    if search["total"] is not None:
        return f"{done} of {search['total']}"
    most = search.get("max_trials")
    return f"{done} of at most {most}" if most else str(done)


@dataclass(frozen=True)
class Axis:
    """An axis of the pictures; `is_number` is false for one of texts."""

    key: str
    name: str
    is_shown: bool
    is_flipped: bool
    is_log: bool
    is_number: bool


Key = Annotated[str, StringConstraints(max_length=300, pattern=f"^{PLAIN}$")]
Keys = Annotated[list[Key] | None, Query(max_length=2 * MAX_AXES)]


@dataclass(frozen=True)
class Drawn:
    """What an address asks of the pictures; empty: what suits the search."""

    axis: Keys = None
    flip: Keys = None
    log: Keys = None
    x: Key = ""
    y: Key = ""
    sort: Key = ""


def search_view(search: Json, tab: str, drawn: Drawn, now: float, after: int, address: str) -> dict[str, Any]:
    """The page of a search that REST has shown; its table of trials goes on `after` so many.

    What only its owner and administrators see is empty for others.
    """
    trials, spec, template = search["trials"] or [], search["spec"] or {}, search["job"] or {}
    is_own = search["trials"] is not None
    names = parameter_names(spec, trials)
    done = sum(number for state, number in search["counts"].items() if state not in _GOING)
    ranked = ordered(trials, search["objective"], drawn.sort if tab == "progress" else "")
    more = urlencode({"after": after + PAGE, **({"sort": drawn.sort} if drawn.sort else {})})
    has_more = tab == "progress" and after + PAGE < len(trials)
    return {
        "experiment": listed(search, {}, now),
        "crumbs": [EXPERIMENTS],
        "address": address,
        "is_own": is_own,
        "actions": actions(search) if is_own else {},
        "may_edit": False,
        "tabs": tabs(search["id"], tab) if is_own else (),
        "tab": tab,
        "percent": round(100 * done / search["total"], 1) if search["total"] else 0.0,
        "parameters": [(name, *_range(one)) for name, one in spec.get("parameters", {}).items()],
        "settings": settings(spec, template),
        "command": shlex.join(template.get("command", ())),
        "names": names,
        "trials": best_of(ranked) if tab == "best" else ranked[after : after + PAGE],
        "total": len(trials),
        "next": f"/experiments/{search['id']}?tab=progress&{more}" if has_more else None,
        "axes": axes(spec, trials, names, search["metric"], drawn),
        "drawn": drawn,
        "goes_on": search["state"] not in SEARCH_ENDS,
    }


def tabs(experiment: str, chosen: str, names: Mapping[str, str] = TABS) -> list[Tab]:
    """The tabs of an experiment, by default of a search."""
    return [Tab(name, f"/experiments/{experiment}?tab={key}", key == chosen) for key, name in names.items()]


_GOING = (TrialState.QUEUED, TrialState.RUNNING)


def ordered(trials: Sequence[Any], objective: str, sort: str) -> list[Any]:
    """Trials by the key of a column, with `-` before it for the opposite order; empty: the best first.

    Those without a value are the last.
    """
    key = sort.removeprefix("-") or METRIC
    sign = -1 if sort.startswith("-") or (not sort and objective == "maximize") else 1

    def rank(trial: Any) -> tuple[bool, float, str, int]:
        value = value_of(trial, key)
        if isinstance(value, int | float):
            return False, sign * value, "", sign * trial.place
        return value is None, 0.0, value or "", trial.place

    return sorted(trials, key=rank)


def best_of(ranked: Iterable[Any]) -> list[Any]:
    """The first of trials that have a value and have not failed."""
    fine = (one for one in ranked if one.metric is not None and one.state is not TrialState.FAILED)
    return list(islice(fine, BEST))


def value_of(trial: Any, key: str) -> float | str | None:
    """What a trial has on an axis, or in a column."""
    if key in (METRIC, NUMBER):
        value: float | None = trial.metric if key == METRIC else trial.place
        return value
    found: float | str | None = trial.parameters.get(key.removeprefix(PARAMETER))
    return found


def actions(search: Json) -> dict[str, str]:
    """What can be done with a search, and how it is called."""
    return {name: VERBS[name] for name in _possible(search)}


def _possible(search: Json) -> Sequence[str]:
    best = ["run-best"] if search["best"] and search["best"].job else []
    if search["state"] in SEARCH_ENDS:
        again = ["restart"] if search["state"] in FINITE else []
        return (*again, *best, "delete")
    if search["wanted"] != SearchWanted.RUN:
        return best
    return (*(["restart"] if search["state"] in FINITE else []), "stop", *best)


VERBS: Mapping[str, str] = {
    "stop": "Stop",
    "restart": "Restart",
    "run-best": "Run the best again",
    "delete": "Delete",
}

EFFECTS: Mapping[str, str] = {
    "stop": "No trial starts any more, and those that run are stopped. What has finished stays.",
    "restart": "It goes on: trials that were stopped are tried again, or all of them if it has failed."
    " Trials that have finished stay.",
    "run-best": "A new job with the files, the command and the parameters of the best trial.",
    "delete": "The search, its trials, their jobs and all that they have made are deleted.",
}


def question(search: Json, action: str, key: str) -> Question:
    """The question about an action; `key` is of what it starts."""
    back = f"/experiments/{search['id']}"
    verb = "Run the best trial of" if action == "run-best" else VERBS[action]
    button = "Run again" if action == "run-best" else VERBS[action]
    hidden = [("key", key)] if action == "run-best" else []
    return Question(verb, search["name"], [EFFECTS[action]], back, hidden=hidden, button=button)


def parameter_names(spec: Json, trials: Iterable[Any]) -> list[str]:
    """Names of the parameters that are searched, in the order in which they were given."""
    names = dict.fromkeys(spec.get("parameters", ()))
    for parameters in (*spec.get("configurations", ()), *(trial.parameters for trial in trials)):
        names |= dict.fromkeys(parameters)
    return list(names)


def axes(spec: Json, trials: Sequence[Any], names: Sequence[str], metric: str, drawn: Drawn) -> list[Axis]:
    """Those that are shown first, in their order."""
    ranges = spec.get("parameters", {})
    known = {
        f"{PARAMETER}{name}": (
            name,
            all(isinstance(trial.parameters.get(name, 0), int | float) for trial in trials),
            ranges.get(name, {}).get("base") is not None,
        )
        for name in names[:MAX_AXES]
    } | {METRIC: (metric, True, False)}
    standard = [*list(known)[: min(AXES, len(known) - 1)], METRIC]
    chosen = [key for key in drawn.axis or () if key in known] or standard
    ordered = dict.fromkeys([*chosen, *known])
    return [
        Axis(
            key,
            known[key][0],
            key in chosen,
            key in (drawn.flip or ()),
            known[key][1] and (key in (drawn.log or ()) if drawn.axis else known[key][2]),
            known[key][1],
        )
        for key in ordered
    ]


def _range(one: Json) -> tuple[str, str]:
    if one.get("values"):
        return "values", ", ".join(map(str, one["values"]))
    step = f", every {one['step']:g}" if one.get("step") else ""
    power = f"{one['base']:g} to the power of " if one.get("base") else ""
    return one.get("type", "float"), f"{power}{one['min']:g} to {one['max']:g}{step}"


SETTINGS: Mapping[str, str] = {
    "max_trials": "Trials at most",
    "max_parallel": "Trials at the same time",
    "max_minutes": "Minutes at most",
    "seed": "Seed",
    "max_budget": "Maximum budget",
    "budget": "Parameter of the budget",
    "eta": "Of how many one goes on",
    "warm_up": "Random trials first",
}


def settings(spec: Json, template: Json) -> list[tuple[str, str]]:
    """Other settings of a search, and the size of its trials."""
    only = {"hyperband": ("max_budget", "budget", "eta"), "tpe": ("warm_up",), "bayesian": ("warm_up",)}
    special = {name for names in only.values() for name in names}
    wanted = only.get(spec.get("algorithm", ""), ())
    found = [
        (label, f"{spec[name]}")
        for name, label in SETTINGS.items()
        if name in spec and (name not in special or name in wanted)
    ]
    if "min" in template:
        most = template.get("max") or template["min"]
        found.append(("Workers of a trial", wording.bounds(template["min"], most, template.get("allowed"))))
    return found
