import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from edt_launch.service.database.engine import Database
from edt_launch.service.database.migrate import NewerDatabaseError, migrate
from edt_launch.service.database.tables import metadata


def test_migrations_lead_to_the_tables(database_url: str) -> None:
    database = Database(database_url)
    assert migrate(database)
    with database.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
    assert not migrate(database)
    database.close()


def test_a_newer_database_is_left_alone(database_url: str) -> None:
    database = Database(database_url)
    migrate(database)
    with database.writing() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(NewerDatabaseError, match="9999"):
        migrate(database)
    database.close()
