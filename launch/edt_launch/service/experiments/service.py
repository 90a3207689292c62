"""Projects, definitions, experiments and runs, as REST and pages show them."""

from collections.abc import Sequence
from typing import Any

from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.db.paging import PageQuery
from edt_launch.service.errors import InvalidError
from edt_launch.service.experiments import comparison, experiments, projects, runs
from edt_launch.service.experiments.experiments import Planned
from edt_launch.service.experiments.records import (
    DefinitionRecord,
    ExperimentRecord,
    ProjectRecord,
    Role,
    RunRecord,
)
from edt_launch.service.experiments.runs import Shown
from edt_launch.service.experiments.searches import service as searches
from edt_launch.service.experiments.stores.run_query import DELETED
from edt_launch.service.jobs.forecast.forecast import changes_by
from edt_launch.service.jobs.forecast.foreseen import of_starting

SHOWN = (
    *("id", "experiment", "definition", "name", "code", "digest", "job", "owner", "created"),
    *("place", "parameters"),
)
"""Fields of a run that answers have as they are."""

MAX_RUNS = 100
"""Runs of one page, or of one comparison."""


def _is_managed(user: UserRecord, project: ProjectRecord) -> bool:
    return user.is_admin or user.name == project.owner


def summary(experiment: ExperimentRecord, runs: int) -> dict[str, Any]:
    """An experiment as lists have it."""
    return {**vars(experiment), "objective": experiment.objective or None, "runs": runs}


def curves(
    context: Context, user: UserRecord, ids: Sequence[str], names: Sequence[str], points: int
) -> dict[str, Any]:
    """Values of jobs over time; raises `NotFoundError`, and `ForbiddenError` if they are others'."""
    records = [context.job(id_) for id_ in ids]
    runs.may_follow(context, user, records)
    found = []
    for job in records:
        columns = context.series_cache.columns(context.home.job(job.id).output.events, names, points)
        first, *others = (
            {field: columns[field][name] for field in ("values", "gaps", "about")} for name in names
        )
        found.append(
            {
                **{field: columns[field] for field in ("time", "training", "step", "size")},
                **first,
                "others": dict(zip(names[1:], others, strict=True)),
                "job": job.id,
                "name": job.name,
                "owner": job.owner,
            }
        )
    return {"name": names[0], "series": found}


def compared(
    context: Context, user: UserRecord, experiment_id: str, only: Sequence[str] | None
) -> dict[str, Any]:
    """Runs of an experiment beside each other, the newest first, or those of `only` in its order."""
    experiment = experiments.experiment_for(context, user, experiment_id)
    found = context.store.experiments.runs(experiment_id, None, MAX_RUNS, only)
    if only is not None:
        known = {run.id: run for run in found}
        if missing := [id_ for id_ in only if id_ not in known]:
            raise InvalidError(
                f"run: {missing[0]!r} is none of {experiment.name!r}",
                "GET /api/v1/experiments/{id}/runs lists them",
            )
        found = [known[id_] for id_ in dict.fromkeys(only)]
    return beside(context, experiment, found)


def page_of(
    context: Context, experiment_id: str, before: int | None, limit: int = MAX_RUNS
) -> tuple[list[RunRecord], int | None]:
    """Runs before the one of a number, the newest first, and the `before` of the page after them."""
    found = context.store.experiments.runs(experiment_id, before, limit + 1)
    page = found[:limit]
    return page, page[-1].number if len(found) > limit else None


def beside(context: Context, experiment: ExperimentRecord, found: Sequence[RunRecord]) -> dict[str, Any]:
    """Runs of an experiment beside each other, in their order."""
    shown = runs.shown(context, found)
    metrics = runs.metrics(experiment, shown)
    return {
        "runs": [view(one) for one in shown],
        "metrics": [
            one._asdict() | {"best": None if one.best is None else found[one.best].id} for one in metrics
        ],
        "parameters": [one._asdict() for one in comparison.differing([_started_with(run) for run in found])],
    }


def _started_with(run: RunRecord) -> dict[str, str]:
    if run.place is not None:
        return comparison.of_trial(run.parameters)
    return comparison.parameters(run.name, run.code, run.spec)


def view(shown: Shown) -> dict[str, Any]:
    """A run as answers have it."""
    run, job, outcome = shown.run, shown.job, shown.outcome
    least = run.spec.get("min", 1)
    state = run.state if run.place is not None and run.job is None else DELETED
    known = {"job_name": job and (job.name or job.id)} | {
        name: None if job is None else getattr(job, name)
        for name in ("started", "ended", "size", "total_steps")
    }
    known |= {"tags": () if job is None else job.tags, "comment": "" if job is None else job.comment}
    has_ended = run.outcome is not None or (job is not None and job.has_ended)
    return {
        **{name: getattr(run, name) for name in SHOWN},
        **known,
        "state": state if job is None else job.state,
        "ended_as": outcome.state if has_ended else None,
        "seconds": outcome.seconds,
        "min": least if job is None else job.min,
        "max": run.spec.get("max") or least if job is None else job.max,
        "step": outcome.step,
        "hours": outcome.hours,
        "values": outcome.values,
    }


def preview(context: Context, user: UserRecord, planned: Sequence[Planned]) -> dict[str, Any]:
    """What starting runs would change."""
    with experiments.submissions(context, user, planned) as submitted:
        for one in submitted:
            context.submitter.check(one)
        changes = changes_by(context.store, context.settings, submitted, context.clock())
    return {"changes": changes, "lines": of_starting(changes)}


def projects_page(context: Context, user: UserRecord, wanted: PageQuery) -> dict[str, Any]:
    """A page of the projects that a user is a member of; for administrators, of all."""
    page, following = wanted.cut(context.store.projects.of(None if user.is_admin else user.name, wanted))
    roles = context.store.projects.roles(user.name, [one.id for one in page])
    return {
        "projects": [
            {**vars(one), "role": Role.MANAGER if _is_managed(user, one) else roles[one.id]}
            for one in page
            if _is_managed(user, one) or one.id in roles  # the membership may have ended meanwhile
        ],
        "next": following,
    }


def project(context: Context, user: UserRecord, record: ProjectRecord) -> dict[str, Any]:
    """A project and its members."""
    role = projects.role_of(context, user, record)
    return {**vars(record), "role": role, "members": context.store.projects.members(record.id)}


def _scope(context: Context, user: UserRecord, within: str | None) -> tuple[str | None, str | None]:
    """Whose projects a list is limited to, None for all, and the id of the only project, if one is named."""
    id_ = None if within is None else projects.project_for(context, user, within).id
    return None if user.is_admin else user.name, id_


def definitions_page(
    context: Context, user: UserRecord, within: str | None, name: str | None, wanted: PageQuery
) -> dict[str, Any]:
    """A page of the training definitions of projects that a user is a member of, or of one project."""
    own, id_ = _scope(context, user, within)
    page, following = wanted.cut(context.store.definitions.page(own, id_, name, wanted))
    return {"definitions": page, "next": following}


def definition(context: Context, record: DefinitionRecord) -> dict[str, Any]:
    """A training definition and its codes."""
    return {**vars(record), "codes": context.store.definitions.codes(record.id)}


def experiments_page(
    context: Context, user: UserRecord, within: str | None, name: str | None, wanted: PageQuery
) -> dict[str, Any]:
    """A page of the experiments of projects that a user is a member of, or of one project."""
    own, id_ = _scope(context, user, within)
    page, following = wanted.cut(context.store.experiments.page(own, id_, name, wanted))
    counts = context.store.experiments.run_counts([one.id for one in page])
    return {
        "experiments": [summary(one, counts.get(one.id, 0)) for one in page],
        "next": following,
    }


def listed(context: Context, user: UserRecord, owner: str | None, wanted: PageQuery) -> dict[str, Any]:
    """A page of the experiments in projects of a user, and of all searches; or of those of an owner."""
    own = None if user.is_admin else user.name
    page, following = wanted.cut(context.store.experiments.shown_page(own, owner, wanted))
    found = searches.listed(context, user, [one for one in page if one.algorithm])
    known = {one["id"]: one for one in found}
    counts = context.store.experiments.run_counts([one.id for one in page if one.id not in known])
    shown = [known.get(one.id) or summary(one, counts.get(one.id, 0)) for one in page]
    return {"experiments": shown, "next": following}


def experiment(context: Context, record: ExperimentRecord) -> dict[str, Any]:
    """An experiment and its training definitions."""
    store = context.store
    trainings = store.experiments.trainings(record.id)
    used = store.definitions.some([one.definition for one in trainings])
    shown = [
        {**vars(one), "name": used[one.definition].name, "min": one.least, "max": one.most}
        for one in trainings
        if one.definition in used  # it may have been taken out and deleted meanwhile
    ]
    counts = store.experiments.run_counts([record.id])
    return {**summary(record, counts.get(record.id, 0)), "trainings": shown}
