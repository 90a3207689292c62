import pytest
from sqlalchemy import text

from edt_launch.service.db import sole_user
from edt_launch.service.db.engine import AWAY, Database
from edt_launch.service.db.sole_user import InUseError, SoleUser


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sole_user, "PATIENCE", "10ms")


def test_one_at_a_time(database_url: str) -> None:
    databases = [Database(database_url) for _ in range(2)]
    one, other = map(SoleUser, databases)
    one.hold()
    one.hold()
    with pytest.raises(InUseError):
        other.hold()
    one.release()
    other.hold()
    other.release()
    for database in databases:
        database.close()


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_lost_connection_is_made_again(database_url: str) -> None:
    database, other = Database(database_url), Database(database_url)
    sole = SoleUser(database)
    sole.hold()
    with other.writing() as connection:
        connection.execute(
            text(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid != pg_backend_pid()"
            )
        )
    with pytest.raises(AWAY):
        sole.hold()
    sole.hold()
    with pytest.raises(InUseError):
        SoleUser(other).hold()
    sole.release()
    database.close()
    other.close()
