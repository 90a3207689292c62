import pytest

from edt_launch.service.db.engine import Database, parse_url


@pytest.mark.parametrize(
    "url", ["mysql://host/name", "nonsense", "", "oracle://x", "sqlite://", "sqlite:///:memory:"]
)
def test_other_databases_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"sqlite|postgresql"):
        parse_url(url)


def test_a_failed_transaction_leaves_nothing(database_url: str) -> None:
    database = Database(database_url)
    with database.writing() as connection:
        connection.exec_driver_sql("CREATE TABLE t (x INTEGER)")

    def fail() -> None:
        with database.writing() as connection:
            connection.exec_driver_sql("INSERT INTO t VALUES (1)")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with database.reading() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM t").scalar() == 0
    database.close()
