"""Who has changed what."""

from collections.abc import Collection, Sequence

from sqlalchemy import delete, insert, select

from edt_launch.service.accounts.records import AuditRecord
from edt_launch.service.db.engine import Database
from edt_launch.service.db.tables import audit

MAX_ROWS = 100_000
"""Changes that are kept: the latest."""

EVERY = 1_000
"""Changes after which older ones are forgotten."""


class Audit:
    """The table of changes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, change: AuditRecord) -> None:
        """Write down a change; its `number` is given by the database."""
        values = {name: value for name, value in vars(change).items() if name != "number"}
        with self._database.writing() as connection:
            query = insert(audit).values(values).returning(audit.c.number)
            number = connection.execute(query).scalar_one()
            if number % EVERY == 0:
                connection.execute(delete(audit).where(audit.c.number <= number - MAX_ROWS))

    def last(self, paths: Collection[str]) -> AuditRecord | None:
        """The newest change of one of these paths."""
        query = select(audit).where(audit.c.path.in_(sorted(paths))).order_by(audit.c.number.desc()).limit(1)
        return next((AuditRecord(**row._mapping) for row in self._database.rows(query)), None)

    def newest(self, limit: int, before: int | None = None, user: str | None = None) -> Sequence[AuditRecord]:
        """The newest `limit` changes, of one user and before a number if given; the newest first."""
        query = select(audit).order_by(audit.c.number.desc()).limit(limit)
        if before is not None:
            query = query.where(audit.c.number < before)
        if user is not None:
            query = query.where(audit.c.user == user)
        return [AuditRecord(**row._mapping) for row in self._database.rows(query)]
