"""Training definitions, and their codes."""

from dataclasses import replace
from typing import Any

from sqlalchemy import delete, func, select, update
from sqlalchemy.exc import IntegrityError

from edt_launch.service.db.engine import Database
from edt_launch.service.db.tables import codes, definitions, experiments, trainings
from edt_launch.service.experiments.records import CodeRecord, DefinitionRecord
from edt_launch.service.experiments.stores.projects import InUseError
from edt_launch.service.experiments.stores.versioned import Versioned


class TooManyError(Exception):
    """There are as many as there may be."""


class Definitions(Versioned[DefinitionRecord]):
    """The tables of training definitions and of their codes, which are never changed."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, definitions, DefinitionRecord, codes)

    def ids(self) -> frozenset[str]:
        """Those of all definitions."""
        return frozenset(row.id for row in self._database.rows(select(definitions.c.id)))

    def codes(self, definition: str) -> list[CodeRecord]:
        """A definition's codes, oldest first."""
        query = select(codes).where(codes.c.definition == definition).order_by(codes.c.place)
        return [CodeRecord(**row._mapping) for row in self._database.rows(query)]

    def code(self, definition: str, place: int) -> CodeRecord | None:
        """One of a definition's codes."""
        query = select(codes).where(codes.c.definition == definition, codes.c.place == place)
        rows = self._database.rows(query)
        return CodeRecord(**rows[0]._mapping) if rows else None

    def set_code(self, code: CodeRecord, seen: int, most: int, **values: Any) -> bool | None:
        """Have a definition run other code from now on, which is added unless it was there; as `change`.

        Raises:
            TooManyError: it would have more than `most` codes.
        """
        of = codes.c.definition == code.definition
        changes = {**values, "changed": code.created, "changed_by": code.owner}
        try:
            with self._database.writing() as connection:
                if not self._change(connection, code.definition, seen, changes):
                    return False
                known = select(codes.c.place).where(of, codes.c.digest == code.digest)
                if (place := connection.execute(known).scalar()) is None:
                    place = (connection.execute(select(func.max(codes.c.place)).where(of)).scalar() or 0) + 1
                    if place > most:
                        raise TooManyError
                    self._add_parts(connection, [replace(code, place=place)])
                of_code = update(definitions).where(definitions.c.id == code.definition)
                connection.execute(of_code.values(code=place))
                return True
        except IntegrityError:
            return None

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
