"""The machines."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Row, delete, insert, select, update

from edt_launch.service.database.engine import Database
from edt_launch.service.database.records import HostRecord
from edt_launch.service.database.tables import hosts


class Hosts:
    """The table of machines."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> list[HostRecord]:
        """All of them, by name."""
        with self._database.reading() as connection:
            return [_record(row) for row in connection.execute(select(hosts).order_by(hosts.c.name))]

    def put(self, changed: Iterable[HostRecord]) -> None:
        """Add hosts, or replace what was known of them; all or none."""
        with self._database.writing() as connection:
            for host in changed:
                values = {**_values(host), "name": host.name}
                found = connection.execute(update(hosts).where(hosts.c.name == host.name).values(values))
                if not found.rowcount:
                    connection.execute(insert(hosts).values(values))

    def drain(self, name: str, is_draining: bool, reason: str, now: float) -> bool:
        """Have a host take no new workers and lose those it has, or end that; False if there is none such."""
        values = {"is_draining": is_draining, "reason": reason, "changed": now}
        with self._database.writing() as connection:
            return bool(connection.execute(update(hosts).where(hosts.c.name == name).values(values)).rowcount)

    def remove(self, name: str) -> None:
        """Forget a host."""
        with self._database.writing() as connection:
            connection.execute(delete(hosts).where(hosts.c.name == name))


def _values(host: HostRecord) -> dict[str, Any]:
    return {
        "devices": list(host.devices),
        "is_up": host.is_up,
        "is_draining": host.is_draining,
        "source": host.source,
        "reason": host.reason,
        "changed": host.changed,
    }


def _record(row: Row[Any]) -> HostRecord:
    return HostRecord(**{**row._mapping, "devices": tuple(row.devices)})
