"""Finding what belongs to projects: training definitions and experiments."""

from collections.abc import Collection
from typing import Any, Generic, TypeVar

from sqlalchemy import Select, Table, select

from edt_launch.service.db.engine import Database
from edt_launch.service.db.paging import PageQuery
from edt_launch.service.experiments.records import DefinitionRecord, ExperimentRecord
from edt_launch.service.experiments.stores.projects import of_user

RecordT = TypeVar("RecordT", DefinitionRecord, ExperimentRecord)


class InProjects(Generic[RecordT]):
    """A table of one kind of thing, each of which has an id, a project and a name of its own there."""

    def __init__(
        self, database: Database, table: Table, record: type[RecordT], unlisted: Collection[str] = ()
    ) -> None:
        self._database = database
        self._table = table
        self._record: type[RecordT] = record
        self._listed = [column for column in table.c if column.name not in unlisted]

    def get(self, wanted: str) -> RecordT | None:
        """The one of an id."""
        return self.some([wanted]).get(wanted)

    def some(self, wanted: Collection[str]) -> dict[str, RecordT]:
        """Those of these ids; those that are not there are left out."""
        rows = self._database.rows(select(self._table).where(self._table.c.id.in_(sorted(wanted))))
        return {row.id: self._record(**row._mapping) for row in rows}

    def page(
        self, user: str | None, project: str | None, name: str | None, wanted: PageQuery
    ) -> list[RecordT]:
        """A page of them, and one more, in the order of their creation.

        Those of projects of a user, of one project, of a name; None: of all.
        """
        columns = self._table.c
        query = select(*self._listed).where(columns.project.is_not(None))
        if user is not None:
            query = query.where(columns.project.in_(of_user(user)))
        if project is not None:
            query = query.where(columns.project == project)
        if name is not None:
            query = query.where(columns.name == name)
        return self._page(query, wanted)

    def _page(self, query: Select[Any], wanted: PageQuery) -> list[RecordT]:
        rows = self._database.rows(wanted.of(query, self._table.c.number))
        return [self._record(**row._mapping) for row in rows]
