"""What parts of the service remember between two starts, by key, as JSON."""

from typing import Any

from sqlalchemy import insert, select, update

from edt_launch.service.database.engine import Database
from edt_launch.service.database.tables import memory


class Memory:
    """A small dictionary in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, key: str, default: Any = None) -> Any:
        """What was kept under `key`."""
        with self._database.reading() as connection:
            row = connection.execute(select(memory.c.value).where(memory.c.key == key)).one_or_none()
        return default if row is None else row.value

    def set(self, key: str, value: Any) -> None:
        """Keep `value`, which JSON must be able to say."""
        with self._database.writing() as connection:
            changed = connection.execute(update(memory).where(memory.c.key == key).values(value=value))
            if not changed.rowcount:
                connection.execute(insert(memory).values(key=key, value=value))
