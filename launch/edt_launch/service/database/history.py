"""Who was given which devices when, and what became of jobs."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Row, insert, select

from edt_launch.service.database.engine import Database
from edt_launch.service.database.records import AllocationRecord
from edt_launch.service.database.tables import allocations
from edt_launch.service.database.values import read_held, write_held


class History:
    """The table of allocations, which only grows."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, changes: Iterable[AllocationRecord]) -> None:
        """Write down changes; their `number` is given by the database."""
        rows = [
            {
                "time": change.time,
                "job": change.job,
                "owner": change.owner,
                "before": change.before,
                "after": change.after,
                "devices": write_held(change.devices),
                "reason": change.reason,
            }
            for change in changes
        ]
        if rows:
            with self._database.writing() as connection:
                connection.execute(insert(allocations), rows)

    def newest(
        self, job: str | None = None, since: float | None = None, limit: int = 1000
    ) -> Sequence[AllocationRecord]:
        """The newest `limit` changes, of one job and after a time if these are given; the oldest first."""
        query = select(allocations)
        if job is not None:
            query = query.where(allocations.c.job == job)
        if since is not None:
            query = query.where(allocations.c.time >= since)
        query = query.order_by(allocations.c.number.desc()).limit(limit)
        with self._database.reading() as connection:
            return [_record(row) for row in connection.execute(query)][::-1]


def _record(row: Row[Any]) -> AllocationRecord:
    return AllocationRecord(**{**row._mapping, "devices": read_held(row.devices)})
