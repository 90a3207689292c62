"""Everything that the service remembers: one store for each group of tables; methods are transactions."""

from sqlalchemy.engine import URL

from edt_launch.service.database.accounts import Accounts
from edt_launch.service.database.engine import Database
from edt_launch.service.database.execs import Execs
from edt_launch.service.database.history import History
from edt_launch.service.database.hosts import Hosts
from edt_launch.service.database.jobs import Jobs
from edt_launch.service.database.memory import Memory
from edt_launch.service.database.migrate import migrate
from edt_launch.service.database.searches import Searches
from edt_launch.service.database.shares import Shares


class Store:
    """The stores of one database. Safe to use from many threads.

    Attributes:
        accounts: users and their tokens.
        execs: what WMLA's clients call jobs.
        history: who was given which devices when.
        hosts: the machines.
        jobs: jobs, and the states that they have had.
        memory: what parts of the service remember, as JSON.
        searches: for hyperparameters, and their trials.
        shares: the owners' tree.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.accounts = Accounts(database)
        self.execs = Execs(database)
        self.history = History(database)
        self.hosts = Hosts(database)
        self.jobs = Jobs(database)
        self.memory = Memory(database)
        self.searches = Searches(database)
        self.shares = Shares(database)

    @classmethod
    def opened(cls, url: str | URL) -> "Store":
        """The stores of the database that a URL names, its tables made or migrated.

        Raises:
            ValueError: the URL makes no sense.
            NewerDatabaseError: the database was made by a newer version.
            sqlalchemy.exc.OperationalError: the database cannot be reached.
        """
        return cls.of(Database(url))

    @classmethod
    def of(cls, database: Database) -> "Store":
        """The stores of a database, its tables made or migrated; raises like `opened`."""
        migrate(database)
        return cls(database)

    def close(self) -> None:
        """Close all connections."""
        self._database.close()
