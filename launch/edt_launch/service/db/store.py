"""Everything that the service remembers: one store for each group of tables; methods are transactions."""

from typing import Any

from sqlalchemy import select
from sqlalchemy.engine import URL

from edt_launch.service.accounts.audit import Audit
from edt_launch.service.accounts.store import Accounts
from edt_launch.service.cluster.store import History, Hosts, Shares
from edt_launch.service.db.engine import Database, put
from edt_launch.service.db.migrate import migrate
from edt_launch.service.db.tables import memory
from edt_launch.service.experiments.stores.definitions import Definitions
from edt_launch.service.experiments.stores.experiments import Experiments
from edt_launch.service.experiments.stores.projects import Projects
from edt_launch.service.jobs.store import Jobs
from edt_launch.service.jobs.wmla_exec_store import Execs


class Memory:
    """What parts of the service remember between two starts, by key, as JSON."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, key: str, default: Any = None) -> Any:
        """What was kept under `key`."""
        rows = self._database.rows(select(memory.c.value).where(memory.c.key == key))
        return rows[0].value if rows else default

    def set(self, key: str, value: Any) -> None:
        """Keep `value`, which JSON must be able to say."""
        with self._database.writing() as connection:
            put(connection, memory, {"key": key, "value": value})


class Store:
    """The stores of one database. Safe to use from many threads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.accounts = Accounts(database)
        self.audit = Audit(database)
        self.definitions = Definitions(database)
        self.execs = Execs(database)
        self.experiments = Experiments(database)
        self.projects = Projects(database)
        self.history = History(database)
        self.hosts = Hosts(database)
        self.jobs = Jobs(database)
        self.memory = Memory(database)
        self.shares = Shares(database)

    @classmethod
    def opened(cls, url: str | URL) -> "Store":
        """The stores of the database that a URL names; raises like `Database` and `of`."""
        return cls.of(Database(url))

    @classmethod
    def of(cls, database: Database) -> "Store":
        """The stores of a database, its tables made or migrated; raises like `migrate`."""
        migrate(database)
        return cls(database)

    def close(self) -> None:
        """Close all connections."""
        self._database.close()
