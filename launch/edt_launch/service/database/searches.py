"""Searches for hyperparameters, and their trials."""

from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from edt_launch.service.database.engine import Database
from edt_launch.service.database.search_records import (
    SEARCH_ENDS,
    SearchRecord,
    SearchState,
    TrialRecord,
    TrialState,
    Wish,
)
from edt_launch.service.database.tables import searches, trials


class Searches:
    """The tables of searches and of trials. The interface adds and wishes; the controller does the rest."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, search: SearchRecord) -> bool:
        """Store a new search; False if there is one of that name."""
        values = {name: value for name, value in _values(search).items() if name != "number"}
        try:
            with self._database.writing() as connection:
                connection.execute(insert(searches).values(values))
        except IntegrityError:
            return False
        return True

    def get(self, name: str) -> SearchRecord | None:
        """The search of an id, or of a name, if there is one."""
        query = select(searches).where(or_(searches.c.name == name, searches.c.id == name))
        with self._database.reading() as connection:
            found = [_search(row) for row in connection.execute(query)]
        return max(found, key=lambda search: search.id == name, default=None)

    def all(
        self, owner: str | None = None, kind: str | None = None, after: int = 0, limit: int | None = None
    ) -> list[SearchRecord]:
        """All searches of a user and kind, or of all; oldest first."""
        query = select(searches).where(searches.c.number > after).order_by(searches.c.number).limit(limit)
        if owner is not None:
            query = query.where(searches.c.owner == owner)
        if kind is not None:
            query = query.where(searches.c.kind == kind)
        with self._database.reading() as connection:
            return list(map(_search, connection.execute(query)))

    def live(self) -> list[SearchRecord]:
        """The searches that have not ended, oldest first."""
        query = (
            select(searches).where(searches.c.state.not_in(sorted(SEARCH_ENDS))).order_by(searches.c.number)
        )
        with self._database.reading() as connection:
            return list(map(_search, connection.execute(query)))

    def ids(self) -> frozenset[str]:
        """Those of all searches."""
        with self._database.reading() as connection:
            return frozenset(connection.execute(select(searches.c.id)).scalars())

    def update(self, search: str, **values: Any) -> None:
        """Write fields of a search, by its id."""
        with self._database.writing() as connection:
            connection.execute(update(searches).where(searches.c.id == search).values(values))

    def wish(self, search: str, wanted: Wish, among: Collection[SearchState]) -> bool:
        """Write down what the owner wants, if the search is in one of these states; whether it was."""
        fits = (searches.c.id == search, searches.c.state.in_(sorted(among)))
        with self._database.writing() as connection:
            return bool(connection.execute(update(searches).where(*fits).values(wanted=wanted)).rowcount)

    def start_again(self, seen: SearchRecord, drop: Collection[int]) -> bool:
        """Have a search go on without some of its trials, if it is as it was seen; whether it was."""
        fresh = {
            "state": SearchState.QUEUED,
            "wanted": Wish.RUN,
            "reason": "",
            "started": None,
            "ended": None,
        }
        with self._database.writing() as connection:
            is_so = bool(connection.execute(update(searches).where(_unchanged(seen)).values(fresh)).rowcount)
            if is_so:
                gone = (trials.c.search == seen.id, trials.c.number.in_(sorted(drop)))
                connection.execute(delete(trials).where(*gone))
            return is_so

    def delete(self, seen: SearchRecord) -> bool:
        """Forget a search and its trials, if it is as it was seen; whether it was."""
        with self._database.writing() as connection:
            return bool(connection.execute(delete(searches).where(_unchanged(seen))).rowcount)

    # Trials.

    def trials(self, search: str) -> list[TrialRecord]:
        """A search's trials, by number."""
        query = select(trials).where(trials.c.search == search).order_by(trials.c.number)
        with self._database.reading() as connection:
            return list(map(_trial, connection.execute(query)))

    def trials_of(self, wanted: Collection[str]) -> dict[str, list[TrialRecord]]:
        """The trials of many searches, by the searches' ids."""
        query = select(trials).where(trials.c.search.in_(sorted(wanted))).order_by(trials.c.number)
        found: dict[str, list[TrialRecord]] = {search: [] for search in wanted}
        with self._database.reading() as connection:
            for row in connection.execute(query):
                found[row.search].append(_trial(row))
        return found

    def add_trial(self, trial: TrialRecord) -> None:
        """Store a new trial."""
        with self._database.writing() as connection:
            connection.execute(insert(trials).values(_values(trial)))

    def update_trial(self, trial: TrialRecord) -> None:
        """Write down what a trial is now."""
        fits = (trials.c.search == trial.search, trials.c.number == trial.number)
        with self._database.writing() as connection:
            connection.execute(update(trials).where(*fits).values(_values(trial)))


def _unchanged(seen: SearchRecord) -> ColumnElement[bool]:
    """A search stands where it stood; one that has ended again since has ended at another time."""
    return and_(
        searches.c.id == seen.id,
        searches.c.state == seen.state,
        searches.c.ended.is_not_distinct_from(seen.ended),
    )


def _values(record: Any) -> dict[str, Any]:
    found = {field.name: getattr(record, field.name) for field in fields(record)}
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in found.items()}


def _search(row: Any) -> SearchRecord:
    enums = {"wanted": Wish(row.wanted), "state": SearchState(row.state)}
    return SearchRecord(**{**row._mapping, **enums})


def _trial(row: Any) -> TrialRecord:
    return TrialRecord(**{**row._mapping, "state": TrialState(row.state)})
