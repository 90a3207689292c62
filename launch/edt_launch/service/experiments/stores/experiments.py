"""Experiments, what they do with training definitions, searches, and the runs of all of them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Text,
    and_,
    cast,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from edt_launch.service.db.engine import Database
from edt_launch.service.db.paging import PageQuery
from edt_launch.service.db.tables import experiments, jobs, runs, trainings
from edt_launch.service.experiments.records import (
    SEARCH_ENDS,
    ExperimentRecord,
    RunRecord,
    SearchState,
    SearchWanted,
    TrainingRecord,
    TrialState,
)
from edt_launch.service.experiments.stores.run_query import RunQuery
from edt_launch.service.experiments.stores.versioned import Versioned, of_user
from edt_launch.service.jobs.states import ENDED, LIVE

_IS_SEARCH = experiments.c.algorithm != ""
_OF_TRIALS = [column for column in runs.c if column.name not in ("spec", "outcome")]


class GoneError(Exception):
    """An experiment was deleted meanwhile."""


class Experiments(Versioned[ExperimentRecord]):
    """The tables of experiments, of their trainings and of runs.

    Of searches, the interface writes new ones and what is wanted of them; their controller writes the rest.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(
            database, experiments, ExperimentRecord, trainings, unlisted=("generator", "template")
        )

    def change_with(
        self, experiment: str, seen: int, with_trainings: Sequence[TrainingRecord] | None, **values: Any
    ) -> bool | None:
        """As `change`; None, too, if a definition of the trainings is gone.

        `with_trainings` takes the place of its trainings; None leaves them as they are.
        """
        try:
            with self._database.writing() as connection:
                if not self._change(connection, experiment, seen, values):
                    return False
                if with_trainings is not None:
                    connection.execute(delete(trainings).where(trainings.c.experiment == experiment))
                    self._add_parts(connection, with_trainings)
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

    def last_trainings(self, project: str) -> dict[str, TrainingRecord]:
        """How the newest experiments of a project run its definitions, by the definitions' ids."""
        query = select(trainings).join(experiments, experiments.c.id == trainings.c.experiment)
        query = query.where(experiments.c.project == project).order_by(experiments.c.number)
        found = (TrainingRecord(**row._mapping) for row in self._database.rows(query))
        return {training.definition: training for training in found}

    def run(self, run: str) -> RunRecord | None:
        """The run of an id."""
        return next(iter(self._runs(select(runs).where(runs.c.id == run))), None)

    def runs(
        self, experiment: str, before: int | None, limit: int, only: Collection[str] | None = None
    ) -> list[RunRecord]:
        """An experiment's runs whose number is less than `before`, the newest first; of the ids in `only`."""
        query = select(runs).where(runs.c.experiment == experiment)
        if before is not None:
            query = query.where(runs.c.number < before)
        if only is not None:
            query = query.where(runs.c.id.in_(sorted(only)))
        return self._runs(query.order_by(runs.c.number.desc()).limit(limit))

    def found(self, wanted: RunQuery) -> list[str]:
        """The ids of the runs that are looked for, in their order."""
        return [row.id for row in self._database.rows(wanted.statement())]

    def without_outcome(self, experiment: str, limit: int) -> list[RunRecord]:
        """The newest runs of an experiment of which nothing is stored that has come of them."""
        fits = (runs.c.experiment == experiment, runs.c.outcome.is_(None), runs.c.job.is_not(None))
        query = select(runs).where(*fits).order_by(runs.c.number.desc()).limit(limit)
        return self._runs(query)

    def outcomes(self, experiment: str) -> Sequence[Any]:
        """Id and stored outcome of each run of an experiment, the newest first; JSON is not read."""
        query = select(runs.c.id, cast(runs.c.outcome, Text)).where(runs.c.experiment == experiment)
        return self._database.rows(query.order_by(runs.c.number.desc()))

    def started_with(self, experiment: str) -> Sequence[Any]:
        """What each run of an experiment was started with, the newest first; JSON is not read."""
        texts = (cast(runs.c.spec, Text).label("spec"), cast(runs.c.parameters, Text).label("parameters"))
        query = select(runs.c.id, runs.c.name, runs.c.code, runs.c.place, *texts)
        query = query.where(runs.c.experiment == experiment).order_by(runs.c.number.desc())
        return self._database.rows(query)

    def runs_of_jobs(self, wanted: Collection[str]) -> dict[str, RunRecord]:
        """The runs that are these jobs, by the jobs' ids."""
        found = self._runs(select(runs).where(runs.c.job.in_(sorted(wanted))))
        return {run.job: run for run in found if run.job is not None}

    def _runs(self, query: Select[Any]) -> list[RunRecord]:
        return [RunRecord(**row._mapping) for row in self._database.rows(query)]

    def search(self, name: str) -> ExperimentRecord | None:
        """The search of an id, or of a name, if there is one."""
        named = or_(experiments.c.name == name, experiments.c.id == name)
        found = self._found(select(experiments).where(_IS_SEARCH, named))
        return max(found, key=lambda search: search.id == name, default=None)

    def searches(self, owner: str | None = None, kind: str | None = None) -> list[ExperimentRecord]:
        """All searches of a user and kind, or of all; oldest first."""
        query = select(experiments).where(_IS_SEARCH).order_by(experiments.c.number)
        if owner is not None:
            query = query.where(experiments.c.owner == owner)
        if kind is not None:
            query = query.where(experiments.c.kind == kind)
        return self._found(query)

    def search_ids(self) -> set[str]:
        """The ids of all searches."""
        return {row.id for row in self._database.rows(select(experiments.c.id).where(_IS_SEARCH))}

    def live_searches(self) -> list[ExperimentRecord]:
        """The searches that have not ended, oldest first."""
        query = select(experiments).where(_IS_SEARCH, experiments.c.state.not_in(sorted(SEARCH_ENDS)))
        return self._found(query.order_by(experiments.c.number))

    def search_page(self, owner: str | None, wanted: PageQuery) -> list[ExperimentRecord]:
        """A page of the searches of a user, or of all, as of `page`; without `generator` and `template`."""
        query = select(*self._listed).where(_IS_SEARCH)
        return self._page(query if owner is None else query.where(experiments.c.owner == owner), wanted)

    def shown_page(self, user: str | None, owner: str | None, wanted: PageQuery) -> list[ExperimentRecord]:
        """A page of searches, and of the experiments in projects of a user; None: all. As `search_page`."""
        query = select(*self._listed)
        if user is not None:
            query = query.where(or_(_IS_SEARCH, experiments.c.project.in_(of_user(user))))
        return self._page(query if owner is None else query.where(experiments.c.owner == owner), wanted)

    def update_search(self, search: str, **values: Any) -> None:
        """Write fields of a search, by its id."""
        self._database.execute(update(experiments).where(experiments.c.id == search).values(values))

    def set_wanted(self, search: str, wanted: SearchWanted, among: Collection[SearchState]) -> bool:
        """Write down what the owner wants, if the search is in one of these states; whether it was."""
        fits = (experiments.c.id == search, experiments.c.state.in_(sorted(among)))
        return self._database.execute(update(experiments).where(*fits).values(wanted=wanted))

    def start_again(
        self, seen: ExperimentRecord, drop: Collection[str], with_jobs: Collection[str] = ()
    ) -> bool:
        """Have a search go on without some trials and their ended jobs, if it is as seen; whether it was."""
        values = {"state": SearchState.QUEUED, "wanted": SearchWanted.RUN, "reason": ""}
        change = update(experiments).where(_unchanged(seen))
        with self._database.writing() as connection:
            if not connection.execute(change.values(values | {"started": None, "ended": None})).rowcount:
                return False
            connection.execute(delete(runs).where(runs.c.id.in_(sorted(drop))))
            _delete_jobs(connection, with_jobs)
            return True

    def delete_search(self, seen: ExperimentRecord, with_jobs: Collection[str] = ()) -> bool:
        """Forget a search, its trials and ended jobs, if it is as it was seen; whether it was."""
        with self._database.writing() as connection:
            if not connection.execute(delete(experiments).where(_unchanged(seen))).rowcount:
                return False
            _delete_jobs(connection, with_jobs)
            return True

    def trials(self, search: str) -> list[RunRecord]:
        """A search's trials, by their places; without `spec` and `outcome`."""
        return self.trials_of([search])[search]

    def trials_of(self, wanted: Collection[str]) -> dict[str, list[RunRecord]]:
        """The trials of many searches, by the searches' ids; without `spec` and `outcome`."""
        query = select(*_OF_TRIALS).where(runs.c.experiment.in_(sorted(wanted))).order_by(runs.c.place)
        found: dict[str, list[RunRecord]] = {search: [] for search in wanted}
        for row in self._database.rows(query):
            found[row.experiment].append(RunRecord(**row._mapping, spec={}))
        return found

    def trial_counts(self, wanted: Collection[str]) -> dict[str, dict[TrialState, int]]:
        """How many trials are in each state, by the searches' ids; states without any are left out."""
        fits = runs.c.experiment.in_(sorted(wanted))
        query = select(runs.c.experiment, runs.c.state, func.count()).where(fits)
        counts: dict[str, dict[TrialState, int]] = {search: {} for search in wanted}
        for search, state, count in self._database.rows(query.group_by(*query.selected_columns[:2])):
            counts[search][state] = count
        return counts

    def best(self, wanted: Collection[str], largest: bool) -> dict[str, RunRecord]:
        """The trials with the largest or smallest metric, the first of equal ones, by searches' ids."""
        order = runs.c.metric.desc() if largest else runs.c.metric
        rank = func.row_number().over(partition_by=runs.c.experiment, order_by=(order, runs.c.place))
        fits = (runs.c.experiment.in_(sorted(wanted)), runs.c.metric.is_not(None))
        ranked = select(runs.c.id, rank.label("rank")).where(*fits).subquery()
        query = select(runs).join(ranked, runs.c.id == ranked.c.id).where(ranked.c.rank == 1)
        return {run.experiment: run for run in self._runs(query)}

    def add_trial(self, trial: RunRecord) -> None:
        """Store a trial that has no job; `GoneError` if its search is gone."""
        with self._database.writing() as connection:
            add_run(connection, trial)

    def update_trial(self, trial: RunRecord) -> None:
        """Write down what a trial is now."""
        names = ("state", "metric", "reason", "started", "ended")
        values = {name: getattr(trial, name) for name in names}
        self._database.execute(update(runs).where(runs.c.id == trial.id).values(values))

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


def _delete_jobs(connection: Connection, ids: Collection[str]) -> None:
    over = (jobs.c.id.in_(sorted(ids)), jobs.c.state.in_(sorted(ENDED)))
    connection.execute(delete(jobs).where(*over))


def _unchanged(seen: ExperimentRecord) -> ColumnElement[bool]:
    """A search stands where it stood; one that has ended again since has ended at another time."""
    return and_(
        experiments.c.id == seen.id,
        experiments.c.state == seen.state,
        experiments.c.ended.is_not_distinct_from(seen.ended),
    )


def _live_jobs(experiment: str) -> Select[tuple[str]]:
    query = select(jobs.c.id).join(runs, runs.c.job == jobs.c.id)
    query = query.where(runs.c.experiment == experiment, jobs.c.state.in_(sorted(LIVE)))
    return query.order_by(jobs.c.number)
