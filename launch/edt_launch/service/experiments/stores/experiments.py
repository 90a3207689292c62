"""Experiments, what they do with training definitions, and their runs."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Select, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from edt_launch.service.db.engine import Database
from edt_launch.service.db.tables import experiments, jobs, runs, trainings
from edt_launch.service.experiments.records import ExperimentRecord, RunRecord, TrainingRecord
from edt_launch.service.experiments.stores.in_projects import InProjects
from edt_launch.service.jobs.states import LIVE


class GoneError(Exception):
    """An experiment was deleted meanwhile."""


class Experiments(InProjects[ExperimentRecord]):
    """The tables of experiments, of their trainings and of runs."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, experiments, ExperimentRecord)

    def add(self, experiment: ExperimentRecord, with_trainings: Sequence[TrainingRecord]) -> bool:
        """Store a new experiment; False if its project has one of that name, or something is gone."""
        values = {name: value for name, value in vars(experiment).items() if name != "number"}
        try:
            with self._database.writing() as connection:
                connection.execute(insert(experiments).values(values))
                _insert(connection, with_trainings)
                return True
        except IntegrityError:
            return False

    def change(
        self,
        experiment: str,
        seen: int,
        with_trainings: Sequence[TrainingRecord] | None = None,
        **values: Any,
    ) -> bool | None:
        """Change an experiment if it has that version; whether it had; None: its new name is taken.

        `with_trainings` takes the place of its trainings; None leaves them as they are. None is returned,
        too, if one of their definitions is gone.
        """
        fits = (experiments.c.id == experiment, experiments.c.version == seen)
        change = update(experiments).where(*fits).values(values | {"version": seen + 1})
        try:
            with self._database.writing() as connection:
                if not connection.execute(change).rowcount:
                    return False
                if with_trainings is not None:
                    connection.execute(delete(trainings).where(trainings.c.experiment == experiment))
                    _insert(connection, with_trainings)
                return True
        except IntegrityError:
            return None

    def delete(self, experiment: str) -> Sequence[str]:
        """Forget an experiment and its runs, not their jobs, unless some of these have not ended.

        Returns:
            The ids of those that have not.
        """
        which = experiments.c.id == experiment
        with self._database.writing() as connection:
            # The lock makes whoever starts a run wait, and so not find the experiment.
            connection.execute(select(experiments.c.id).where(which).with_for_update())
            live = [row.id for row in connection.execute(_live_jobs(experiment))]
            if not live:
                connection.execute(delete(experiments).where(which))
            return live

    def trainings(self, experiment: str) -> list[TrainingRecord]:
        """What an experiment does with definitions, in its order."""
        query = select(trainings).where(trainings.c.experiment == experiment).order_by(trainings.c.place)
        return [TrainingRecord(**row._mapping) for row in self._database.rows(query)]

    def run(self, run: str) -> RunRecord | None:
        """The run of an id."""
        rows = self._database.rows(select(runs).where(runs.c.id == run))
        return RunRecord(**rows[0]._mapping) if rows else None

    def runs(
        self, experiment: str, before: int | None, limit: int, only: Collection[str] | None = None
    ) -> list[RunRecord]:
        """An experiment's runs whose number is less than `before`, the newest first; of the ids in `only`."""
        query = select(runs).where(runs.c.experiment == experiment)
        if before is not None:
            query = query.where(runs.c.number < before)
        if only is not None:
            query = query.where(runs.c.id.in_(sorted(only)))
        rows = self._database.rows(query.order_by(runs.c.number.desc()).limit(limit))
        return [RunRecord(**row._mapping) for row in rows]

    def runs_of_jobs(self, wanted: Collection[str]) -> dict[str, RunRecord]:
        """The runs that are these jobs, by the jobs' ids."""
        rows = self._database.rows(select(runs).where(runs.c.job.in_(sorted(wanted))))
        return {row.job: RunRecord(**row._mapping) for row in rows}

    def run_counts(self, wanted: Collection[str]) -> dict[str, int]:
        """How many runs experiments have, by their ids; those without any are left out."""
        fits = runs.c.experiment.in_(sorted(wanted))
        query = select(runs.c.experiment, func.count()).where(fits).group_by(runs.c.experiment)
        return dict(map(tuple, self._database.rows(query)))

    def live_jobs(self, experiment: str) -> list[str]:
        """The ids of jobs of an experiment's runs that have not ended."""
        return [row.id for row in self._database.rows(_live_jobs(experiment))]

    def record(self, outcomes: Mapping[str, Mapping[str, Any]]) -> None:
        """Write down what has come of runs, by their ids; all or none."""
        with self._database.writing() as connection:
            for run, outcome in outcomes.items():
                connection.execute(update(runs).where(runs.c.id == run).values(outcome=outcome))

    def delete_run(self, run: str) -> bool:
        """Forget a run, not its job; whether it was there."""
        return self._database.execute(delete(runs).where(runs.c.id == run))


def add_run(connection: Connection, run: RunRecord) -> None:
    """Store a run in the transaction of its job; raises `GoneError` if its experiment is gone."""
    known = (
        select(experiments.c.id)
        .where(experiments.c.id == run.experiment)
        .with_for_update(key_share=True, read=True)
    )
    if connection.execute(known).first() is None:
        raise GoneError(run.experiment)
    values = {name: value for name, value in vars(run).items() if name != "number"}
    connection.execute(insert(runs).values(values))


def _live_jobs(experiment: str) -> Select[tuple[str]]:
    query = select(jobs.c.id).join(runs, runs.c.job == jobs.c.id)
    query = query.where(runs.c.experiment == experiment, jobs.c.state.in_(sorted(LIVE)))
    return query.order_by(jobs.c.number)


def _insert(connection: Connection, rows: Sequence[TrainingRecord]) -> None:
    if rows:
        connection.execute(insert(trainings), [vars(row) for row in rows])
