"""Searches for parameters, and their trials."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from edt_launch.service.db.engine import Database
from edt_launch.service.db.paging import PageQuery
from edt_launch.service.db.tables import jobs, searches, trials
from edt_launch.service.experiments.searches.records import (
    SEARCH_ENDS,
    SearchRecord,
    SearchState,
    SearchWanted,
    TrialRecord,
    TrialState,
)
from edt_launch.service.jobs.states import ENDED

SHOWN = ("algorithm", "metric", "objective")
MAX_TRIALS = "max_trials"
"""What a listing tells of definitions."""


_TRIALS = select(*(column.label(column.key) for column in trials.c))
"""Rows have the fields' names, not the columns'."""


class Searches:
    """The tables of searches and of trials.

    The interface writes new ones and what is wanted of them; the controller writes the rest.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, search: SearchRecord) -> bool:
        """Store a new search; False if there is one of that name."""
        values = {name: value for name, value in vars(search).items() if name != "number"}
        try:
            self._database.execute(insert(searches).values(values))
        except IntegrityError:
            return False
        return True

    def get(self, name: str) -> SearchRecord | None:
        """The search of an id, or of a name, if there is one."""
        query = select(searches).where(or_(searches.c.name == name, searches.c.id == name))
        rows = self._database.rows(query)
        return max(map(_search, rows), key=lambda search: search.id == name, default=None)

    def of_job(self, job: str) -> SearchRecord | None:
        """The search whose trial is a job, if there is one."""
        query = select(searches).where(searches.c.id.in_(select(trials.c.search).where(trials.c.job == job)))
        return next(map(_search, self._database.rows(query)), None)

    def all(self, owner: str | None = None, kind: str | None = None) -> list[SearchRecord]:
        """All searches of a user and kind, or of all; oldest first."""
        query = select(searches).order_by(searches.c.number)
        if owner is not None:
            query = query.where(searches.c.owner == owner)
        if kind is not None:
            query = query.where(searches.c.kind == kind)
        return list(map(_search, self._database.rows(query)))

    def page(self, owner: str | None, wanted: PageQuery) -> list[SearchRecord]:
        """A page of the searches of a user, or of all, and one more, in the order of their creation.

        Of their definitions, which may be long, they have `algorithm`, `metric`, `objective` and, if it is
        given, `max_trials` alone, and no template.
        """
        columns = [column for column in searches.c if column.name not in ("definition", "template")]
        parts = [searches.c.definition[name].as_string().label(f"_{name}") for name in SHOWN]
        parts.append(searches.c.definition[MAX_TRIALS].as_integer().label(f"_{MAX_TRIALS}"))
        query = select(*columns, *parts)
        if owner is not None:
            query = query.where(searches.c.owner == owner)
        records = []
        for row in self._database.rows(wanted.of(query, searches.c.number)):
            values = dict(row._mapping)
            definition = {name: values.pop(f"_{name}") for name in SHOWN}
            if (most := values.pop(f"_{MAX_TRIALS}")) is not None:
                definition[MAX_TRIALS] = most
            records.append(SearchRecord(definition=definition, **values))
        return records

    def live(self) -> list[SearchRecord]:
        """The searches that have not ended, oldest first."""
        query = select(searches).where(searches.c.state.not_in(sorted(SEARCH_ENDS)))
        return list(map(_search, self._database.rows(query.order_by(searches.c.number))))

    def ids(self) -> frozenset[str]:
        """Those of all searches."""
        return frozenset(row.id for row in self._database.rows(select(searches.c.id)))

    def update(self, search: str, **values: Any) -> None:
        """Write fields of a search, by its id."""
        self._database.execute(update(searches).where(searches.c.id == search).values(values))

    def set_wanted(self, search: str, wanted: SearchWanted, among: Collection[SearchState]) -> bool:
        """Write down what the owner wants, if the search is in one of these states; whether it was."""
        fits = (searches.c.id == search, searches.c.state.in_(sorted(among)))
        return self._database.execute(update(searches).where(*fits).values(wanted=wanted))

    def start_again(self, seen: SearchRecord, drop: Collection[int], with_jobs: Collection[str] = ()) -> bool:
        """Have it go on without some trials and their ended jobs, if it is as it was seen; whether it was."""
        fresh = {"state": SearchState.QUEUED, "wanted": SearchWanted.RUN, "reason": ""}
        values = {**fresh, "started": None, "ended": None}
        with self._database.writing() as connection:
            change = update(searches).where(_unchanged(seen)).values(values)
            is_so = bool(connection.execute(change).rowcount)
            if is_so:
                gone = (trials.c.search == seen.id, trials.c.number.in_(sorted(drop)))
                connection.execute(delete(trials).where(*gone))
                _delete_jobs(connection, with_jobs)
            return is_so

    def delete(self, seen: SearchRecord, with_jobs: Collection[str] = ()) -> bool:
        """Forget a search, its trials and ended jobs, if it is as it was seen; whether it was."""
        with self._database.writing() as connection:
            is_so = bool(connection.execute(delete(searches).where(_unchanged(seen))).rowcount)
            if is_so:
                _delete_jobs(connection, with_jobs)
            return is_so

    def trials(self, search: str) -> list[TrialRecord]:
        """A search's trials, by number."""
        return self.trials_of([search])[search]

    def trials_of(self, wanted: Collection[str]) -> dict[str, list[TrialRecord]]:
        """The trials of many searches, by the searches' ids."""
        query = _TRIALS.where(trials.c.search.in_(sorted(wanted))).order_by(trials.c.number)
        found: dict[str, list[TrialRecord]] = {search: [] for search in wanted}
        for row in self._database.rows(query):
            found[row.search].append(TrialRecord(**row._mapping))
        return found

    def counts(self, wanted: Collection[str]) -> dict[str, dict[TrialState, int]]:
        """How many trials are in each state, by the searches' ids; states without any are left out."""
        fits = trials.c.search.in_(sorted(wanted))
        query = select(trials.c.search, trials.c.state, func.count()).where(fits)
        counts: dict[str, dict[TrialState, int]] = {search: {} for search in wanted}
        for search, state, count in self._database.rows(query.group_by(*query.selected_columns[:2])):
            counts[search][state] = count
        return counts

    def best(self, wanted: Collection[str], largest: bool) -> dict[str, TrialRecord]:
        """The trials with the largest or smallest metric, the first of equal ones, by searches' ids."""
        order = trials.c.metric.desc() if largest else trials.c.metric
        place = func.row_number().over(partition_by=trials.c.search, order_by=(order, trials.c.number))
        fits = (trials.c.search.in_(sorted(wanted)), trials.c.metric.is_not(None))
        ranked = select(trials.c.search, trials.c.number, place.label("place")).where(*fits).subquery()
        is_same = and_(trials.c.search == ranked.c.search, trials.c.number == ranked.c.number)
        query = _TRIALS.join(ranked, is_same).where(ranked.c.place == 1)
        return {row.search: TrialRecord(**row._mapping) for row in self._database.rows(query)}

    def add_trial(self, trial: TrialRecord) -> None:
        """Store a new trial."""
        self._database.execute(insert(trials).values(vars(trial)))

    def update_trial(self, trial: TrialRecord) -> None:
        """Write down what a trial is now."""
        fits = (trials.c.search == trial.search, trials.c.number == trial.number)
        self._database.execute(update(trials).where(*fits).values(vars(trial)))


def _delete_jobs(connection: Connection, ids: Collection[str]) -> None:
    over = (jobs.c.id.in_(sorted(ids)), jobs.c.state.in_(sorted(ENDED)))
    connection.execute(delete(jobs).where(*over))


def _unchanged(seen: SearchRecord) -> ColumnElement[bool]:
    """A search stands where it stood; one that has ended again since has ended at another time."""
    return and_(
        searches.c.id == seen.id,
        searches.c.state == seen.state,
        searches.c.ended.is_not_distinct_from(seen.ended),
    )


def _search(row: Any) -> SearchRecord:
    return SearchRecord(**row._mapping)
