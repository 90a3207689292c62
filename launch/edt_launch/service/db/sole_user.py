"""One service at a time uses a database: two would each take the other's jobs for lost."""

from pathlib import Path
from typing import IO

from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from edt_launch.service.db.engine import AWAY, Database
from edt_launch.service.db.locking import lock

_LOCK = 0x65647455
"""Number of PostgreSQL's advisory lock."""

PATIENCE = "5s"
"""How long PostgreSQL may take to notice that a service which had the lock is gone."""

_TIMED_OUT = "55P03"


class InUseError(Exception):
    """Another service is using the database."""

    def __init__(self) -> None:
        super().__init__("another service is using it; stop that one, or name another --database")


class SoleUser:
    """Keeps other services out of a database: by a file beside SQLite's, by a connection to PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._held: IO[bytes] | Connection | None = None

    def hold(self) -> None:
        """Take hold of the database, or see that it is still held; a lost connection is made again.

        Raises:
            InUseError: another service has it.
            sqlalchemy.exc.OperationalError: it cannot be reached.
            OSError: the file beside SQLite's cannot be made.
        """
        if isinstance(self._held, Connection):
            try:
                self._held.exec_driver_sql("SELECT 1")
            except AWAY:
                self.release()
                raise
        elif self._held is None:
            self._held = self._beside() if self._database.is_sqlite else self._connected()

    def release(self) -> None:
        """Let others use it."""
        if self._held is not None:
            self._held.close()
        self._held = None

    def _beside(self) -> IO[bytes]:
        file = Path(self._database.url.database or "").resolve()
        try:
            return lock(file.with_name(f"{file.name}.lock"))
        except BlockingIOError:
            raise InUseError from None

    def _connected(self) -> Connection:
        connection = self._database.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        connection.detach()  # the pool would keep it, and the lock with it
        try:
            connection.exec_driver_sql(f"SET lock_timeout = '{PATIENCE}'")
            connection.exec_driver_sql(f"SELECT pg_advisory_lock({_LOCK})")
        except OperationalError as error:
            connection.close()
            if getattr(error.orig, "sqlstate", None) != _TIMED_OUT:
                raise
            raise InUseError from None
        return connection
