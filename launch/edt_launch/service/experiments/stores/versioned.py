"""What projects, training definitions and experiments have in common: id, version, a name of their own."""

from collections.abc import Collection, Sequence
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection, Select, Table, insert, select, update
from sqlalchemy.exc import IntegrityError

from edt_launch.service.db.engine import Database
from edt_launch.service.db.paging import PageQuery
from edt_launch.service.db.tables import members, projects
from edt_launch.service.experiments.records import DefinitionRecord, ExperimentRecord, ProjectRecord

RecordT = TypeVar("RecordT", ProjectRecord, DefinitionRecord, ExperimentRecord)


class Versioned(Generic[RecordT]):
    """A table of one kind of thing, and one of their `parts`; lists are without `unlisted` columns."""

    def __init__(
        self,
        database: Database,
        table: Table,
        record: type[RecordT],
        parts: Table,
        unlisted: Collection[str] = (),
    ) -> None:
        self._database = database
        self._parts = parts
        self._table = table
        self._record: type[RecordT] = record
        self._listed = [column for column in table.c if column.name not in unlisted]

    def add(self, thing: RecordT, parts: Sequence[Any] = ()) -> bool:
        """Store a new one and records of its parts; False if its name is taken, or something is gone.

        Names of things that are in no project are theirs alone, whoever owns them.
        """
        values = {name: value for name, value in vars(thing).items() if name != "number"}
        try:
            with self._database.writing() as connection:
                connection.execute(insert(self._table).values(values))
                self._add_parts(connection, parts)
                return True
        except IntegrityError:
            return False

    def _add_parts(self, connection: Connection, parts: Sequence[Any]) -> None:
        if parts:
            connection.execute(insert(self._parts), [vars(part) for part in parts])

    def get(self, wanted: str) -> RecordT | None:
        """The one of an id."""
        return self.some([wanted]).get(wanted)

    def some(self, wanted: Collection[str]) -> dict[str, RecordT]:
        """Those of these ids; those that are not there are left out."""
        found = self._found(select(self._table).where(self._table.c.id.in_(sorted(wanted))))
        return {one.id: one for one in found}

    def named_in(self, project: str, name: str) -> RecordT | None:
        """The one of a name in a project."""
        columns = self._table.c
        found = self._found(select(self._table).where(columns.project == project, columns.name == name))
        return next(iter(found), None)

    def change(self, thing: str, seen: int, **values: Any) -> bool | None:
        """Change one if it has that version; whether it had; None: its new name is taken."""
        try:
            with self._database.writing() as connection:
                return self._change(connection, thing, seen, values)
        except IntegrityError:
            return None

    def _change(self, connection: Connection, thing: str, seen: int, values: dict[str, Any]) -> bool:
        fits = (self._table.c.id == thing, self._table.c.version == seen)
        change = update(self._table).where(*fits).values(values | {"version": seen + 1})
        return connection.execute(change).rowcount > 0

    def page(
        self, user: str | None, project: str | None, name: str | None, wanted: PageQuery
    ) -> list[RecordT]:
        """A page of them, and one more, in the order of their creation.

        Those in projects of a user, of one project, of a name; None: of all.
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
        return self._found(wanted.of(query, self._table.c.number))

    def _found(self, query: Select[Any]) -> list[RecordT]:
        return [self._record(**row._mapping) for row in self._database.rows(query)]


def of_user(user: str) -> Any:
    """The query of the ids of projects that somebody owns or is a member of."""
    joined = select(members.c.project).where(members.c.user == user)
    return select(projects.c.id).where(projects.c.owner == user).union(joined)
