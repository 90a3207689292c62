"""Experiments, which search for hyperparameters, and their trials."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from edt_launch.service.database.engine import Database
from edt_launch.service.database.records import (
    EXPERIMENT_ENDS,
    ExperimentRecord,
    ExperimentState,
    ExperimentWanted,
    TrialRecord,
    TrialState,
)
from edt_launch.service.database.tables import experiments, jobs, trials
from edt_launch.service.states import ENDED

SHOWN = ("algorithm", "metric", "objective")
"""What a listing tells of definitions."""


_TRIALS = select(*(column.label(column.key) for column in trials.c))
"""Rows have the fields' names, not the columns'."""


class Experiments:
    """The tables of experiments and of trials.

    The interface writes new ones and what is wanted of them; the controller writes the rest.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, experiment: ExperimentRecord) -> bool:
        """Store a new experiment; False if there is one of that name."""
        values = {name: value for name, value in vars(experiment).items() if name != "number"}
        try:
            self._database.execute(insert(experiments).values(values))
        except IntegrityError:
            return False
        return True

    def get(self, name: str) -> ExperimentRecord | None:
        """The experiment of an id, or of a name, if there is one."""
        query = select(experiments).where(or_(experiments.c.name == name, experiments.c.id == name))
        rows = self._database.rows(query)
        return max(map(_experiment, rows), key=lambda experiment: experiment.id == name, default=None)

    def all(self, owner: str | None = None, kind: str | None = None) -> list[ExperimentRecord]:
        """All experiments of a user and kind, or of all; oldest first."""
        query = select(experiments).order_by(experiments.c.number)
        if owner is not None:
            query = query.where(experiments.c.owner == owner)
        if kind is not None:
            query = query.where(experiments.c.kind == kind)
        return list(map(_experiment, self._database.rows(query)))

    def page(self, owner: str | None, after: int, limit: int) -> list[ExperimentRecord]:
        """Experiments of a user, or of all, whose number is higher than `after`; oldest first.

        Of their definitions, which may be long, they have `algorithm`, `metric` and `objective` alone, and
        no template.
        """
        columns = [column for column in experiments.c if column.name not in ("definition", "template")]
        parts = [experiments.c.definition[name].as_string().label(f"_{name}") for name in SHOWN]
        query = select(*columns, *parts).where(experiments.c.number > after)
        if owner is not None:
            query = query.where(experiments.c.owner == owner)
        records = []
        for row in self._database.rows(query.order_by(experiments.c.number).limit(limit)):
            values = dict(row._mapping)
            definition = {name: values.pop(f"_{name}") for name in SHOWN}
            records.append(ExperimentRecord(definition=definition, **values))
        return records

    def live(self) -> list[ExperimentRecord]:
        """The experiments that have not ended, oldest first."""
        query = select(experiments).where(experiments.c.state.not_in(sorted(EXPERIMENT_ENDS)))
        return list(map(_experiment, self._database.rows(query.order_by(experiments.c.number))))

    def ids(self) -> frozenset[str]:
        """Those of all experiments."""
        return frozenset(row.id for row in self._database.rows(select(experiments.c.id)))

    def update(self, experiment: str, **values: Any) -> None:
        """Write fields of an experiment, by its id."""
        self._database.execute(update(experiments).where(experiments.c.id == experiment).values(values))

    def set_wanted(
        self, experiment: str, wanted: ExperimentWanted, among: Collection[ExperimentState]
    ) -> bool:
        """Write down what the owner wants, if the experiment is in one of these states; whether it was."""
        fits = (experiments.c.id == experiment, experiments.c.state.in_(sorted(among)))
        return self._database.execute(update(experiments).where(*fits).values(wanted=wanted))

    def start_again(
        self, seen: ExperimentRecord, drop: Collection[int], with_jobs: Collection[str] = ()
    ) -> bool:
        """Have it go on without some trials and their ended jobs, if it is as it was seen; whether it was."""
        fresh = {"state": ExperimentState.QUEUED, "wanted": ExperimentWanted.RUN, "reason": ""}
        values = {**fresh, "started": None, "ended": None}
        with self._database.writing() as connection:
            change = update(experiments).where(_unchanged(seen)).values(values)
            is_so = bool(connection.execute(change).rowcount)
            if is_so:
                gone = (trials.c.experiment == seen.id, trials.c.number.in_(sorted(drop)))
                connection.execute(delete(trials).where(*gone))
                _delete_jobs(connection, with_jobs)
            return is_so

    def delete(self, seen: ExperimentRecord, with_jobs: Collection[str] = ()) -> bool:
        """Forget an experiment, its trials and ended jobs, if it is as it was seen; whether it was."""
        with self._database.writing() as connection:
            is_so = bool(connection.execute(delete(experiments).where(_unchanged(seen))).rowcount)
            if is_so:
                _delete_jobs(connection, with_jobs)
            return is_so

    def trials(self, experiment: str) -> list[TrialRecord]:
        """An experiment's trials, by number."""
        return self.trials_of([experiment])[experiment]

    def trials_of(self, wanted: Collection[str]) -> dict[str, list[TrialRecord]]:
        """The trials of many experiments, by the experiments' ids."""
        query = _TRIALS.where(trials.c.experiment.in_(sorted(wanted))).order_by(trials.c.number)
        found: dict[str, list[TrialRecord]] = {experiment: [] for experiment in wanted}
        for row in self._database.rows(query):
            found[row.experiment].append(TrialRecord(**row._mapping))
        return found

    def counts(self, wanted: Collection[str]) -> dict[str, dict[TrialState, int]]:
        """How many trials are in each state, by the experiments' ids; states without any are left out."""
        fits = trials.c.experiment.in_(sorted(wanted))
        query = select(trials.c.experiment, trials.c.state, func.count()).where(fits)
        counts: dict[str, dict[TrialState, int]] = {experiment: {} for experiment in wanted}
        for experiment, state, count in self._database.rows(query.group_by(*query.selected_columns[:2])):
            counts[experiment][state] = count
        return counts

    def best(self, wanted: Collection[str], largest: bool) -> dict[str, TrialRecord]:
        """The trials with the largest or smallest metric, the first of equal ones, by experiments' ids."""
        order = trials.c.metric.desc() if largest else trials.c.metric
        place = func.row_number().over(partition_by=trials.c.experiment, order_by=(order, trials.c.number))
        fits = (trials.c.experiment.in_(sorted(wanted)), trials.c.metric.is_not(None))
        ranked = select(trials.c.experiment, trials.c.number, place.label("place")).where(*fits).subquery()
        is_same = and_(trials.c.experiment == ranked.c.experiment, trials.c.number == ranked.c.number)
        query = _TRIALS.join(ranked, is_same).where(ranked.c.place == 1)
        return {row.experiment: TrialRecord(**row._mapping) for row in self._database.rows(query)}

    def add_trial(self, trial: TrialRecord) -> None:
        """Store a new trial."""
        self._database.execute(insert(trials).values(vars(trial)))

    def update_trial(self, trial: TrialRecord) -> None:
        """Write down what a trial is now."""
        fits = (trials.c.experiment == trial.experiment, trials.c.number == trial.number)
        self._database.execute(update(trials).where(*fits).values(vars(trial)))


def _delete_jobs(connection: Connection, ids: Collection[str]) -> None:
    over = (jobs.c.id.in_(sorted(ids)), jobs.c.state.in_(sorted(ENDED)))
    connection.execute(delete(jobs).where(*over))


def _unchanged(seen: ExperimentRecord) -> ColumnElement[bool]:
    """An experiment stands where it stood; one that has ended again since has ended at another time."""
    return and_(
        experiments.c.id == seen.id,
        experiments.c.state == seen.state,
        experiments.c.ended.is_not_distinct_from(seen.ended),
    )


def _experiment(row: Any) -> ExperimentRecord:
    return ExperimentRecord(**row._mapping)
