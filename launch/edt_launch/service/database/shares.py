"""The owners' tree: who gets which share."""

from collections.abc import Mapping
from math import inf, isinf
from typing import Any

from sqlalchemy import Row, delete, insert, select, update

from edt_launch.service.database.engine import Database
from edt_launch.service.database.records import ShareRecord
from edt_launch.service.database.tables import shares


class Shares:
    """The table of the tree's nodes. The root, named "", is always there."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> list[ShareRecord]:
        """All nodes, by name; the root first."""
        with self._database.reading() as connection:
            found = [_record(row) for row in connection.execute(select(shares).order_by(shares.c.name))]
        return found if any(node.name == "" for node in found) else [ShareRecord("", None), *found]

    def put(self, node: ShareRecord) -> None:
        """Add a node or replace what was known of it, but for its remembered usage."""
        kept = ("service", "entitlement", "usage_at")
        values = _values(node)
        with self._database.writing() as connection:
            settings = {name: value for name, value in values.items() if name not in kept}
            found = connection.execute(update(shares).where(shares.c.name == node.name).values(settings))
            if not found.rowcount:
                connection.execute(insert(shares).values(values))

    def add_missing(self, node: ShareRecord) -> None:
        """Add a node unless there is one of that name."""
        with self._database.writing() as connection:
            if connection.execute(select(shares.c.name).where(shares.c.name == node.name)).first() is None:
                connection.execute(insert(shares).values(_values(node)))

    def remove(self, name: str) -> None:
        """Forget a node; those below it hang below its parent then."""
        with self._database.writing() as connection:
            parent = connection.execute(select(shares.c.parent).where(shares.c.name == name)).scalar()
            connection.execute(update(shares).where(shares.c.parent == name).values(parent=parent or ""))
            connection.execute(delete(shares).where(shares.c.name == name))

    def remember(self, usage: Mapping[str, tuple[float, float, float]]) -> None:
        """Keep (service, entitlement, at) of nodes, by their names; all or none."""
        with self._database.writing() as connection:
            for name, (service, entitlement, at) in usage.items():
                values = {"service": service, "entitlement": entitlement, "usage_at": at}
                found = connection.execute(update(shares).where(shares.c.name == name).values(values))
                if not found.rowcount:
                    node = ShareRecord(name, None if name == "" else "", service=service)
                    connection.execute(insert(shares).values(_values(node) | values))


def _values(node: ShareRecord) -> dict[str, Any]:
    values = {column.name: getattr(node, column.name) for column in shares.columns}
    return {**values, "limit": None if isinf(node.limit) else node.limit}


def _record(row: Row[Any]) -> ShareRecord:
    limit = row._mapping["limit"]
    return ShareRecord(**{**row._mapping, "limit": inf if limit is None else limit})
