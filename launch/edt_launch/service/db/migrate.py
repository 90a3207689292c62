"""Bring a database to the newest form of the tables."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from edt_launch.service.db.engine import Database
from edt_launch.service.db.tables import metadata

_LOCK = 0x6564745F
"""Number of PostgreSQL's advisory lock, so that two services do not migrate at once."""


FIRST = "0017"
"""The oldest form of a database that can be migrated."""


class OlderDatabaseError(Exception):
    """The database has the form `revision`, which is older than `FIRST`."""

    def __init__(self, revision: str) -> None:
        super().__init__(
            f"the database has the form {revision!r}; this version migrates {FIRST!r} and later ones: "
            "start the version between them once, or begin with an empty database"
        )


class NewerDatabaseError(Exception):
    """The database has been used by a newer version of the service, and calls itself `revision`."""

    def __init__(self, revision: str) -> None:
        super().__init__(
            f"the database has the form {revision!r}, unknown to this version: a newer one has used it; "
            "start that one"
        )


def migrate(database: Database) -> bool:
    """Make the tables, or bring them to their newest form, all or nothing; whether anything was done.

    Raises:
        NewerDatabaseError: the database was made by a newer version.
        OlderDatabaseError: the database was last used before the first migration that is left.
    """
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    scripts = ScriptDirectory.from_config(config)
    with database.writing() as connection:
        if not database.is_sqlite:
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
        context = MigrationContext.configure(connection, opts={"target_metadata": metadata})
        present = context.get_current_revision()
        if present == scripts.get_current_head():
            return False
        if present is None:
            metadata.create_all(connection)
            context.stamp(scripts, "head")
            return True
        if present not in {script.revision for script in scripts.walk_revisions()}:
            raise OlderDatabaseError(present) if present < FIRST else NewerDatabaseError(present)
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
    return True
