"""Connections: one engine for SQLite and PostgreSQL, with short transactions that read or write."""

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Connection,
    Delete,
    Engine,
    Insert,
    Row,
    Select,
    Table,
    Update,
    create_engine,
    event,
    insert,
    update,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnectionError

BUSY_TIMEOUT = 30.0
"""Seconds for which a statement waits for another process that has locked SQLite's file."""

POOL_SIZE = 16
"""Connections that are kept; another `POOL_SIZE` are made when these are all in use."""

AWAY = (OperationalError, InterfaceError, NoConnectionError)
"""What is raised while the database does not answer, a restart of its server for instance."""


class Database:
    """An engine, and the two kinds of transactions.

    The URL is like ``sqlite:////path/edt.db`` or ``postgresql://user:password@host/name``, or it is refused.
    """

    def __init__(self, url: str | URL) -> None:
        self.url = parse_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self.engine = _engine(self.url)
        self._writers = threading.Lock()
        """SQLite has one writer at a time; its own way of waiting is to sleep and try again."""

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that changes nothing and sees one state of the database."""
        with self.engine.connect() as connection, connection.begin():
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that is kept if the block ends without an exception."""
        with contextlib.ExitStack() as stack:
            if self.is_sqlite:
                stack.enter_context(self._writers)
            connection = stack.enter_context(self.engine.connect()).execution_options(edt_writes=True)
            stack.enter_context(connection.begin())
            yield connection

    def rows(self, query: Select[*tuple[Any, ...]]) -> Sequence[Row[*tuple[Any, ...]]]:
        """What a query finds, in a transaction of its own."""
        with self.reading() as connection:
            return connection.execute(query).all()

    def value(self, query: Select[*tuple[Any, ...]]) -> Any:
        """The first column of the first row that a query finds; None if it finds nothing."""
        with self.reading() as connection:
            return connection.execute(query).scalar()

    def execute(self, statement: Insert | Update | Delete) -> bool:
        """Whether a statement, in a transaction of its own, has changed anything."""
        with self.writing() as connection:
            return connection.execute(statement).rowcount > 0

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def parse_url(url: str | URL) -> URL:
    """The database that a URL names, with the driver that we use; `ValueError` if it is of another kind."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):  # the latter: of a port that is no number
        raise ValueError(
            "the database's URL makes no sense; it is like sqlite:////path/edt.db or postgresql://host/name"
        ) from None
    match parsed.drivername:
        case "sqlite" if parsed.database in (None, "", ":memory:"):
            raise ValueError(
                "a database in memory would forget its jobs; name a file: sqlite:////path/edt.db"
            )
        case "sqlite":
            return parsed
        case "postgresql" | "postgres" | "postgresql+psycopg":
            return parsed.set(drivername="postgresql+psycopg")
    raise ValueError(f"database {parsed.drivername!r} is not supported; use sqlite or postgresql")


def sqlite_url(path: Path) -> URL:
    """The URL of a SQLite file."""
    return URL.create("sqlite", database=str(path))


def put(
    connection: Connection, table: Table, values: Mapping[str, Any], new: Mapping[str, Any] | None = None
) -> None:
    """Update the row that has the primary key in `values`, or else insert one, with `new` besides."""
    (key,) = table.primary_key
    if not connection.execute(update(table).where(key == values[key.name]).values(values)).rowcount:
        connection.execute(insert(table).values({**(new or {}), **values}))


def _engine(url: URL) -> Engine:
    pool = {"pool_size": POOL_SIZE, "max_overflow": POOL_SIZE}
    if url.get_backend_name() != "sqlite":
        return create_engine(url, **pool, pool_pre_ping=True, isolation_level="READ COMMITTED")
    engine = create_engine(url, **pool, connect_args={"timeout": BUSY_TIMEOUT})
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _set_up_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # Python's module would begin transactions later than asked for
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")  # a job that was accepted survives a power cut
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    """Take the lock of writers at once: a reader that turns writer may find that it cannot."""
    writes = connection.get_execution_options().get("edt_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
