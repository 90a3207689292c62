"""Training definitions, and their codes."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from edt_launch.service.db.engine import Database
from edt_launch.service.db.tables import codes, definitions, experiments, trainings
from edt_launch.service.experiments.records import CodeRecord, DefinitionRecord
from edt_launch.service.experiments.stores.in_projects import InProjects
from edt_launch.service.experiments.stores.projects import InUseError


class TooManyError(Exception):
    """There are as many as there may be."""


class TakenError(Exception):
    """Another one has that name."""


class Definitions(InProjects[DefinitionRecord]):
    """The tables of training definitions and of their codes, which are never changed."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, definitions, DefinitionRecord)

    def add(self, definition: DefinitionRecord, code: CodeRecord | None) -> bool:
        """Store a new definition and its code; False if its project has one of that name, or is gone."""
        values = {name: value for name, value in vars(definition).items() if name != "number"}
        try:
            with self._database.writing() as connection:
                connection.execute(insert(definitions).values(values))
                if code is not None:
                    connection.execute(insert(codes).values(vars(code)))
                return True
        except IntegrityError:
            return False

    def ids(self) -> frozenset[str]:
        """Those of all definitions."""
        return frozenset(row.id for row in self._database.rows(select(definitions.c.id)))

    def change(self, definition: str, seen: int, **values: Any) -> bool | None:
        """Change a definition if it has that version; whether it had; None: its new name is taken."""
        fits = (definitions.c.id == definition, definitions.c.version == seen)
        change = update(definitions).where(*fits).values(values | {"version": seen + 1})
        try:
            return self._database.execute(change)
        except IntegrityError:
            return None

    def codes(self, definition: str) -> list[CodeRecord]:
        """A definition's codes, oldest first."""
        query = select(codes).where(codes.c.definition == definition).order_by(codes.c.place)
        return [CodeRecord(**row._mapping) for row in self._database.rows(query)]

    def code(self, definition: str, place: int) -> CodeRecord | None:
        """One of a definition's codes."""
        query = select(codes).where(codes.c.definition == definition, codes.c.place == place)
        rows = self._database.rows(query)
        return CodeRecord(**rows[0]._mapping) if rows else None

    def set_code(self, code: CodeRecord, seen: int, most: int, **values: Any) -> CodeRecord | None:
        """Have a definition of a version run other code from now on, which is added unless it was there.

        With it, `values` of the definition are changed. Returns the code with its place, or None if the
        definition has another version.

        Raises:
            TooManyError: it would have more than `most` codes.
            TakenError: its new name is taken.
        """
        try:
            return self._set_code(code, seen, most, values)
        except IntegrityError:
            raise TakenError from None

    def _set_code(
        self, code: CodeRecord, seen: int, most: int, changes: Mapping[str, Any]
    ) -> CodeRecord | None:
        of = codes.c.definition == code.definition
        fits = (definitions.c.id == code.definition, definitions.c.version == seen)
        values = {**changes, "version": seen + 1, "changed": code.created, "changed_by": code.owner}
        with self._database.writing() as connection:
            if not connection.execute(update(definitions).where(*fits).values(values)).rowcount:
                return None
            row = connection.execute(select(codes).where(of, codes.c.digest == code.digest)).first()
            if row is None:
                last = connection.execute(select(func.max(codes.c.place)).where(of)).scalar() or 0
                if last >= most:
                    raise TooManyError
                code = replace(code, place=last + 1)
                connection.execute(insert(codes).values(vars(code)))
            else:
                code = CodeRecord(**row._mapping)
            connection.execute(
                update(definitions).where(definitions.c.id == code.definition).values(code=code.place)
            )
            return code

    def delete(self, definition: str) -> bool:
        """Forget a definition and its codes; whether it was there.

        Raises:
            InUseError: experiments use it.
        """
        try:
            return self._database.execute(delete(definitions).where(definitions.c.id == definition))
        except IntegrityError:
            raise InUseError(self.users(definition)) from None

    def users(self, definition: str) -> list[str]:
        """Names of experiments that use a definition: the first eleven."""
        using = select(trainings.c.experiment).where(trainings.c.definition == definition)
        query = select(experiments.c.name).where(experiments.c.id.in_(using))
        return [row.name for row in self._database.rows(query.order_by(experiments.c.number).limit(11))]
