"""The machines, the owners' tree, and who was given which devices when."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Select, and_, delete, exists, func, insert, or_, select, update

from edt_launch.service.cluster.records import AllocationRecord, HostRecord, ShareRecord
from edt_launch.service.db.engine import Database, put
from edt_launch.service.db.tables import allocations, hosts, jobs, shares


class Hosts:
    """The table of machines."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> list[HostRecord]:
        """All of them, by name."""
        rows = self._database.rows(select(hosts).order_by(hosts.c.name))
        return [HostRecord(**row._mapping) for row in rows]

    def put(self, changed: Iterable[HostRecord]) -> None:
        """Add hosts, or replace what was known of them; all or none."""
        with self._database.writing() as connection:
            for host in changed:
                put(connection, hosts, vars(host))

    def drain(self, name: str, is_draining: bool, reason: str, now: float) -> bool:
        """Have a host take no new workers and lose those it has, or end that; False if there is none such."""
        values = {"is_draining": is_draining, "reason": reason, "changed": now}
        return self._database.execute(update(hosts).where(hosts.c.name == name).values(values))


def fresh(name: str) -> ShareRecord:
    """A node of that name as it is when it is added."""
    return ShareRecord(name, "" if name else None)


def _node(name: str) -> Select[*tuple[Any, ...]]:
    return select(shares).where(shares.c.name == name)


class Shares:
    """The table of the tree's nodes. The root, named "", is always there."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> list[ShareRecord]:
        """All nodes, by name; the root first."""
        rows = self._database.rows(select(shares).order_by(shares.c.name))
        nodes = [ShareRecord(**row._mapping) for row in rows]
        return nodes if any(node.name == "" for node in nodes) else [fresh(""), *nodes]

    def put(self, node: ShareRecord, version: str | None = None) -> bool:
        """Add a node or replace what was known of it, but for its remembered usage.

        Args:
            version: that it has to have; None for any. A node that is not there has that of its defaults.

        Returns:
            Whether it had that version; if not, nothing has changed.
        """
        with self._database.writing() as connection:
            found = connection.execute(_node(node.name).with_for_update()).first()
            present = ShareRecord(**found._mapping) if found else fresh(node.name)
            if version not in (None, present.version):
                return False
            put(connection, shares, {"name": node.name, **node.settings}, new=vars(node))
            return True

    def add_missing(self, node: ShareRecord) -> None:
        """Add a node unless there is one of that name."""
        with self._database.writing() as connection:
            if connection.execute(_node(node.name)).first() is None:
                connection.execute(insert(shares).values(vars(node)))

    def remove(self, name: str) -> None:
        """Forget a node; those below it hang below its parent then."""
        with self._database.writing() as connection:
            parent = connection.execute(select(shares.c.parent).where(shares.c.name == name)).scalar()
            connection.execute(update(shares).where(shares.c.parent == name).values(parent=parent or ""))
            connection.execute(delete(shares).where(shares.c.name == name))

    def remember(self, usage: Mapping[str, Mapping[str, float]]) -> None:
        """Keep columns of usage of nodes, by their names; all or none."""
        with self._database.writing() as connection:
            for name, columns in usage.items():
                values = {"name": name, **columns}
                put(connection, shares, values, new=vars(fresh(name)))


class History:
    """The table of allocations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, changes: Iterable[AllocationRecord]) -> None:
        """Write down changes; their `number` is given by the database."""
        columns = [column.name for column in allocations.columns if column.name != "number"]
        rows = [{name: getattr(change, name) for name in columns} for change in changes]
        if rows:
            with self._database.writing() as connection:
                connection.execute(insert(allocations), rows)

    def prune(self, before: float, limit: int) -> None:
        """Forget the `limit` oldest changes from before that time of jobs that are not there any more."""
        is_there = exists().where(jobs.c.id == allocations.c.job)
        old = select(allocations.c.number).where(allocations.c.time < before, ~is_there)
        oldest = old.order_by(allocations.c.time).limit(limit)
        numbers = [row.number for row in self._database.rows(oldest)]
        if numbers:
            self._database.execute(delete(allocations).where(allocations.c.number.in_(numbers)))

    def newest_number(self) -> int:
        """That of the newest change; 0 before the first."""
        return int(self._database.value(select(func.max(allocations.c.number))) or 0)

    def after(self, number: int) -> Sequence[AllocationRecord]:
        """The changes whose number is higher; the oldest first."""
        query = select(allocations).where(allocations.c.number > number).order_by(allocations.c.number)
        return [AllocationRecord(*row) for row in self._database.rows(query)]

    def window(self, since: float, until: float, limit: int) -> Sequence[AllocationRecord]:
        """The newest `limit` changes of a time, and of each job before it the last; the oldest first."""
        before = select(func.max(allocations.c.number)).where(allocations.c.time < since)
        last = allocations.c.number.in_(before.group_by(allocations.c.job))
        during = allocations.c.time.between(since, until)
        query = select(allocations).where(or_(during, and_(last, allocations.c.after > 0)))
        query = query.order_by(allocations.c.number.desc()).limit(limit)
        return [AllocationRecord(*row) for row in self._database.rows(query)][::-1]

    def of_jobs(self, jobs: Collection[str]) -> Sequence[AllocationRecord]:
        """All changes of some jobs, the oldest first."""
        query = select(allocations).where(allocations.c.job.in_(sorted(jobs))).order_by(allocations.c.number)
        return [AllocationRecord(*row) for row in self._database.rows(query)]

    def newest(
        self, job: str | None = None, since: float | None = None, limit: int = 1000
    ) -> Sequence[AllocationRecord]:
        """The newest `limit` changes, of one job and after a time if these are given; the oldest first."""
        query = select(allocations).order_by(allocations.c.number.desc()).limit(limit)
        if job is not None:
            query = query.where(allocations.c.job == job)
        if since is not None:
            query = query.where(allocations.c.time >= since)
        return [AllocationRecord(*row) for row in self._database.rows(query)][::-1]
