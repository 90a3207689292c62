import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import text

from edt_launch.service.database.accounts import Accounts
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


def test_sessions_of_earlier_versions_are_known(database_url: str) -> None:
    database = Database(database_url)
    migrate(database)
    made = [("a", "session", 28800.0), ("b", "session", None), ("c", "mine", 28800.0), ("d", "session", 60.0)]
    now = 1_795_325_115.481153
    with database.writing() as connection:
        connection.execute(text("DROP INDEX ix_tokens_parent"))
        for column in ("is_session", "parent"):
            connection.execute(text(f"ALTER TABLE tokens DROP COLUMN {column}"))
        connection.execute(text("UPDATE alembic_version SET version_num = '0005'"))
        connection.execute(text("INSERT INTO users VALUES ('ann', false, 1.0, NULL)"))
        for name, called, lasts in made:
            values = {"id": name, "name": called, "now": now, "end": None if lasts is None else now + lasts}
            connection.execute(
                text("INSERT INTO tokens VALUES (:id, :id, 'ann', :name, :now, :end, NULL)"), values
            )
    migrate(database)
    sessions = {token.id for token in Accounts(database).tokens() if token.is_session}
    assert sessions == {"a"}
    database.close()


def test_a_newer_database_is_left_alone(database_url: str) -> None:
    database = Database(database_url)
    migrate(database)
    with database.writing() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(NewerDatabaseError, match="9999"):
        migrate(database)
    database.close()
