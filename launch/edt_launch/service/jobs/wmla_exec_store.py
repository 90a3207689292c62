"""Execs: what WMLA's clients call jobs, in a table of their own, since most jobs have no such names."""

from collections.abc import Callable, Collection, Mapping

from sqlalchemy import delete, insert, or_, select, update

from edt_launch.service.db.engine import Database
from edt_launch.service.db.tables import execs
from edt_launch.service.jobs.records import ExecRecord

AT_ONCE = 10_000
"""Jobs that one statement names; SQLite takes some 32,000 values."""


class Execs:
    """The table of execs. A row comes before its job, whose environment has the names, and goes with it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def reserve(self, made: Callable[[int], ExecRecord]) -> ExecRecord:
        """Store the names of a job that is about to be made; `made` makes them of a number that counts."""
        with self._database.writing() as connection:
            number = connection.execute(insert(execs).values(args="").returning(execs.c.number)).scalar_one()
            record = made(number)
            connection.execute(update(execs).where(execs.c.number == number).values(vars(record)))
        return record

    def assign(self, number: int, job: str) -> None:
        """Write down which job it is."""
        self._database.execute(update(execs).where(execs.c.number == number).values(job=job))

    def release(self, number: int) -> None:
        """Forget names whose job could not be made."""
        self._database.execute(delete(execs).where(execs.c.number == number, execs.c.job.is_(None)))

    def reserved(self) -> list[ExecRecord]:
        """Names of which no job is known, in order."""
        query = select(execs).where(execs.c.job.is_(None)).order_by(execs.c.number)
        return [ExecRecord(**row._mapping) for row in self._database.rows(query)]

    def find(self, name: str) -> ExecRecord | None:
        """What is called so: the id of an exec, of its driver, of its application or of its job."""
        named = or_(execs.c.id == name, execs.c.driver == name, execs.c.app == name, execs.c.job == name)
        rows = self._database.rows(select(execs).where(named, execs.c.job.is_not(None)).limit(1))
        return ExecRecord(**rows[0]._mapping) if rows else None

    def of(self, jobs: Collection[str]) -> Mapping[str, ExecRecord]:
        """Those of jobs that have names, by the jobs' ids."""
        ids = list(jobs)
        named: dict[str, ExecRecord] = {}
        with self._database.reading() as connection:
            for start in range(0, len(ids), AT_ONCE):
                rows = connection.execute(select(execs).where(execs.c.job.in_(ids[start : start + AT_ONCE])))
                named |= {row.job: ExecRecord(**row._mapping) for row in rows}
        return named
