"""Runs of experiments: whose values somebody may follow, and what has come of them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from edt_launch.core.history.job_history import JobHistory
from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context, may
from edt_launch.service.errors import ForbiddenError
from edt_launch.service.experiments import comparison
from edt_launch.service.experiments.comparison import Metric
from edt_launch.service.experiments.outcomes import DeviceUsage, RunOutcome, usage_of
from edt_launch.service.experiments.records import ExperimentRecord, RunRecord
from edt_launch.service.experiments.searches.spec import Objective
from edt_launch.service.experiments.stores.run_query import DELETED
from edt_launch.service.jobs.records import JobRecord

MAX_READ = 2000
"""Runs whose files are read for one answer, the newest; what has come of those that have ended is stored."""

MAX_KNOWN = 10_000
"""Runs of which it is remembered what they were started with and have come to, as that does not change."""

MAX_METRICS = 20
"""Values by which the runs of an experiment are compared."""


@dataclass(frozen=True)
class Shown:
    """A run as it is now: its job, None if that was deleted, and what has come of it so far."""

    run: RunRecord
    job: JobRecord | None
    outcome: RunOutcome


class Best(NamedTuple):
    """The run with the best value."""

    run: str
    value: float


class Figures(NamedTuple):
    """What has come of a run, in numbers: `values` are the last ones by name."""

    seconds: float
    hours: float
    values: Mapping[str, float]


@dataclass(frozen=True)
class Summary:
    """The runs of an experiment taken together.

    Attributes:
        figures: of each, by their ids, the newest first.
        names: of all values that they have reported.
        best: the run for each of the first `MAX_METRICS` of them; None as in `comparison.Metric`.
    """

    figures: Mapping[str, Figures]
    names: Sequence[str]
    best: Mapping[str, Best | None]


def may_follow(context: Context, user: UserRecord, jobs: Sequence[JobRecord]) -> None:
    """Raise `ForbiddenError` unless a user may see what all of these jobs report.

    Those are their own, and runs in projects that they are a member of.
    """
    others = [job for job in jobs if not may(user, job)]
    if not others:
        return
    seen = experiments_of(context, user, [job.id for job in others])
    for job in others:
        if job.id not in seen:
            raise ForbiddenError(f"{job.id} is a job of {job.owner}", "ask them, or an administrator")


def experiments_of(context: Context, user: UserRecord, jobs: Sequence[str]) -> Mapping[str, ExperimentRecord]:
    """The experiments that jobs are runs of, by the jobs' ids, as far as the user may see them."""
    store = context.store
    runs = store.experiments.runs_of_jobs(jobs)
    experiments = store.experiments.some({run.experiment for run in runs.values()}) if runs else {}
    projects = {one.project for one in experiments.values() if one.project is not None}
    allowed = store.projects.roles(user.name, projects).keys() | store.projects.owned(user.name, projects)

    def is_seen(experiment: ExperimentRecord) -> bool:
        return may(user, experiment) if experiment.project is None else experiment.project in allowed

    found = {job: experiments[run.experiment] for job, run in runs.items()}
    return {job: one for job, one in found.items() if user.is_admin or is_seen(one)}


def shown(context: Context, runs: Sequence[RunRecord]) -> list[Shown]:
    """Runs as they are now; of those that have ended, it is written down."""
    jobs = context.store.jobs.some([run.job for run in runs if run.job]) if runs else {}
    fresh = [(run, jobs[run.job]) for run in runs if run.outcome is None and run.job and run.job in jobs]
    found = outcomes(context, [job for _, job in fresh])
    ended = {run.id: found[job.id].stored() for run, job in fresh if job.has_ended}
    if ended:
        context.store.experiments.record(ended)
    told: list[Shown] = []
    for run in runs:
        known = found.get(run.job or "") or _outcome_of(run.outcome)
        told.append(Shown(run, jobs.get(run.job or ""), known))
    return told


def summary(context: Context, experiment: ExperimentRecord) -> Summary:
    """The runs of an experiment taken together. Of those that have ended, only what is stored is read."""
    store = context.store.experiments
    fresh = shown(context, store.without_outcome(experiment.id, MAX_READ))
    figures = {id_: _stored_figures(outcome) for id_, outcome in store.outcomes(experiment.id)}
    figures |= {one.run.id: _figures(one.outcome) for one in fresh if one.run.id in figures}
    ids, lasts = list(figures), [one.values for one in figures.values()]
    found = comparison.metrics(lasts, experiment.metric, _objective(experiment))[:MAX_METRICS]
    best = {
        one.name: None if one.best is None else Best(ids[one.best], lasts[one.best][one.name])
        for one in found
    }
    return Summary(figures, comparison.names(lasts, experiment.metric), best)


def _figures(outcome: RunOutcome) -> Figures:
    values = {name: last for name in outcome.values if (last := outcome.last(name)) is not None}
    return Figures(outcome.seconds, outcome.hours, values)


@lru_cache(maxsize=MAX_KNOWN)
def _stored_figures(outcome: str | None) -> Figures:
    return _figures(_outcome_of(None if outcome is None else json.loads(outcome)))


def _outcome_of(stored: Mapping[str, Any] | None) -> RunOutcome:
    return RunOutcome.of(stored or {"state": DELETED})


def started_with(context: Context, experiment: str) -> dict[str, Mapping[str, str]]:
    """What each run of an experiment was started with, by its id, the newest first."""
    rows = context.store.experiments.started_with(experiment)
    return {row.id: _read(*row[1:]) for row in rows}


@lru_cache(maxsize=MAX_KNOWN)
def _read(name: str, code: int, place: int | None, spec: str, parameters: str) -> Mapping[str, str]:
    if place is not None:
        return comparison.of_trial(json.loads(parameters))
    return comparison.parameters(name, code, json.loads(spec))


def metrics(experiment: ExperimentRecord, found: Sequence[Shown]) -> list[Metric]:
    """The values that runs of an experiment have reported, with the place of the best run for each."""
    lasts = [_figures(one.outcome).values for one in found]
    return comparison.metrics(lasts, experiment.metric, _objective(experiment))


def _objective(experiment: ExperimentRecord) -> Objective | None:
    return Objective(experiment.objective) if experiment.objective else None


def keep(context: Context, job: str) -> None:
    """Write down what has come of a run, before its job is deleted."""
    shown(context, list(context.store.experiments.runs_of_jobs([job]).values()))


def outcomes(context: Context, jobs: Iterable[JobRecord]) -> Mapping[str, RunOutcome]:
    """What has come of jobs so far, by their ids."""
    known = list(jobs)
    if not known:
        return {}
    now = context.clock()
    used = usage_of(context.store.history.of_jobs([job.id for job in known]), now)
    return {job.id: _outcome(context, job, used.get(job.id), now) for job in known}


def _numbers(history: JobHistory) -> dict[str, dict[str, Any]]:
    return {name: asdict(summary) for name, summary in sorted(history.numbers.items())}


def _outcome(context: Context, job: JobRecord, used: DeviceUsage | None, now: float) -> RunOutcome:
    values = context.history_cache.read(context.home.job(job.id).output.events, _numbers)
    started = used.since if used is not None and job.started is None else job.started
    seconds = 0.0 if started is None else max(0.0, (job.ended or now) - started)
    return RunOutcome(job.state, 0.0 if used is None else used.hours, seconds, job.step, values)
