"""Projects, experiments and runs as tables and lines: pure functions of what the service said."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from edt_launch.cli.screen import Cell, Column, Columns, cut, listing, plural, state_cell
from edt_launch.core.text.durations import duration
from edt_launch.core.text.terminal_text import visible

Things = Sequence[Mapping[str, Any]]

MAX_VALUES = 4
"""Values that a table of runs has columns for."""


def projects_table(projects: Things, now: float, limit: int, colours: bool) -> list[str]:
    """The projects, one a line."""
    if not projects:
        return ["no projects; make one with: edt project create NAME"]
    columns: Columns[Mapping[str, Any]] = {
        Column("ID"): lambda one: visible(one.get("id")),
        Column("NAME", least=8): lambda one: visible(one.get("name")),
        Column("OWNER", least=5): lambda one: visible(one.get("owner")),
        Column("YOU ARE"): lambda one: visible(one.get("role")),
        Column("AGE", right=True, optional=True): partial(_age, now),
    }
    return listing(columns, projects, limit, colours)


def project_lines(project: Mapping[str, Any], limit: int, colours: bool) -> list[str]:
    """A project and its members."""
    head = f"{visible(project.get('name'))} of {visible(project.get('owner'))}"
    told = [visible(line) for line in str(project.get("description") or "").splitlines()]
    return [cut(head, limit), *told, *members_table(project, limit, colours)]


def members_table(project: Mapping[str, Any], limit: int, colours: bool) -> list[str]:
    """A project's members, its owner first."""
    owner = {"user": project.get("owner"), "role": "owner"}
    columns: Columns[Mapping[str, Any]] = {
        Column("USER", least=8): lambda one: visible(one.get("user")),
        Column("ROLE"): lambda one: visible(one.get("role")),
    }
    return listing(columns, [owner, *(project.get("members") or ())], limit, colours)


def experiments_table(experiments: Things, now: float, limit: int, colours: bool) -> list[str]:
    """The experiments, one a line."""
    if not experiments:
        return ["no experiments; make one with: edt experiment create NAME --project PROJECT"]
    columns: Columns[Mapping[str, Any]] = {
        Column("ID"): lambda one: visible(one.get("id")),
        Column("NAME", least=8): lambda one: visible(one.get("name")),
        Column("OWNER", least=5, optional=True): lambda one: visible(one.get("owner")),
        Column("PROJECT", optional=True): lambda one: visible(one.get("project")),
        Column("RUNS", right=True): lambda one: str(one.get("runs", "-")),
        Column("AGE", right=True, optional=True): partial(_age, now),
    }
    return listing(columns, experiments, limit, colours)


def experiment_lines(
    experiment: Mapping[str, Any], runs: Things, now: float, limit: int, colours: bool
) -> list[str]:
    """An experiment, its training definitions, and its runs."""
    head = f"{visible(experiment.get('name'))} of {visible(experiment.get('owner'))}"
    source = visible(experiment.get("source") or "the folder of data")
    columns: Columns[Mapping[str, Any]] = {
        Column("DEFINITION", least=8): lambda one: visible(one.get("name")),
        Column("ID", optional=True): lambda one: visible(one.get("definition")),
        Column("TYPE"): lambda one: visible(one.get("distribution")),
        Column("NODES", right=True): lambda one: f"{one.get('min')}-{one.get('max')}",
    }
    trainings = experiment.get("trainings") or ()
    found = [cut(f"{head}: {plural(len(runs), 'run')} shown, data in {source}", limit)]
    if not trainings:
        return [*found, f"add a training definition: edt experiment add {visible(experiment.get('id'))} NAME"]
    found += listing(columns, trainings, limit, colours)
    return found + (["", *runs_table(runs, {}, limit, colours)] if runs else [])


def comparison_lines(comparison: Mapping[str, Any], limit: int, colours: bool) -> list[str]:
    """Runs beside each other, the best value of each name with a star, and what differs below."""
    runs = comparison.get("runs") or ()
    if not runs:
        return ["no runs; start some with: edt experiment run EXPERIMENT"]
    metrics = comparison.get("metrics") or ()
    best = {str(one["name"]): one.get("best") for one in metrics[:MAX_VALUES]}
    lines = runs_table(runs, best, limit, colours)
    if metrics:
        goals = ", ".join(f"{visible(one['name'])} ({one['objective']})" for one in metrics[:MAX_VALUES])
        lines.append(f"* the best by {goals}")
    for parameter in comparison.get("parameters") or ():
        values = ", ".join(
            f"{run['job']} {_given(value)}" for run, value in zip(runs, parameter["values"], strict=True)
        )
        lines.append(f"{visible(parameter['name'])}: {values}")
    return lines


def runs_table(runs: Things, best: Mapping[str, str | None], limit: int, colours: bool) -> list[str]:
    """Runs, one a line, with a column for each value in `best`, which names the best run."""
    columns: Columns[Mapping[str, Any]] = {
        Column("RUN"): lambda run: visible(run.get("id")),
        Column("JOB"): lambda run: visible(run.get("job")),
        Column("DEFINITION", least=8, optional=True): lambda run: visible(run.get("name")),
        Column("CODE", right=True, optional=True): lambda run: str(run.get("code") or "-"),
        Column("OWNER", least=5, optional=True): lambda run: visible(run.get("owner")),
        Column("STATE"): lambda run: state_cell(str(run.get("state"))),
        Column("SIZE", right=True, optional=True): lambda run: f"{run.get('size') or '-'}",
        Column("TIME", right=True, optional=True): lambda run: duration(run.get("seconds")),
        Column("DEVICE-HOURS", right=True): lambda run: f"{run.get('hours') or 0:.2f}",
        **{Column(visible(name), right=True): partial(_value, name, best[name]) for name in best},
    }
    return listing(columns, runs, limit, colours)


def preview_lines(preview: Mapping[str, Any]) -> list[str]:
    """What starting would change."""
    return [visible(line) for line in preview.get("lines") or ()]


def _value(name: str, best: str | None, run: Mapping[str, Any]) -> Cell:
    last = (run.get("values") or {}).get(name, {}).get("last")
    is_best = best is not None and run.get("id") == best
    text = "-" if last is None else f"{last:.4g}"
    return Cell(f"{text}*" if is_best else text, "green" if is_best else "")


def _given(value: object) -> str:
    return "-" if value is None else visible(value)


def _age(now: float, one: Mapping[str, Any]) -> str:
    return duration(now - float(one.get("created") or now))
