import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection

from edt_launch.service.db.engine import Database
from edt_launch.service.db.migrate import NewerDatabaseError, OlderDatabaseError, migrate
from edt_launch.service.db.store import Store
from edt_launch.service.db.tables import metadata
from edt_launch.service.experiments.records import TrialState

NOTES = {"bounds": [1, 4], "written": 5.0, "lost": 2, "suspended": [["node1", "3", 1000.0]]}
"""What the first version remembered of a job."""


def test_migrations_lead_to_the_tables(database_url: str) -> None:
    database = Database(database_url)
    assert migrate(database)
    with database.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
    assert not migrate(database)
    database.close()


def test_a_database_of_the_first_version_opens(tmp_path: Path) -> None:
    path = tmp_path / "edt.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(Path(__file__).with_name("version_0017.sql").read_text())
        connection.execute("UPDATE jobs SET notes = ?", [json.dumps(NOTES)])
        connection.commit()
    store = Store.opened(f"sqlite:///{path}")
    (job,) = store.jobs.ids()
    assert store.jobs.get(job).command[:2] == ("python", "train.py")
    assert store.jobs.get(job).bounds == (1, 4)
    assert (store.jobs.get(job).granted_at, store.jobs.get(job).launchers_lost) == (5.0, 2)
    assert store.jobs.suspended() == {("node1", "3"): 1000.0}
    assert len(store.jobs.transitions(job)) == 1
    (search,) = store.experiments.live_searches()
    assert store.experiments.trials(search.id)[0].state is TrialState.SUCCEEDED
    with store._database.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
        assert tables_that_number_on(connection) == {"execs", "jobs", "experiments"}
    store.close()


SEARCH = {"metric": "loss", "objective": "maximize", "algorithm": "grid", "max_trials": 5, "parameters": {}}


def test_searches_and_their_trials_of_before_are_all_there(tmp_path: Path) -> None:
    """Also a trial that was submitted when the service was killed; one that was not is chosen again."""
    path = tmp_path / "edt.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(Path(__file__).with_name("version_0017.sql").read_text())
        connection.execute(
            "INSERT INTO searches (number, id, name, owner, definition, file_name, seed, created, wanted,"
            " state, reason, started, ended, kind, template, total) VALUES (7, 'hbbbbbbbb', 'experiment 0',"
            " 'ann', ?, 'code', 3, 4.5, 'stop', 'waiting', 'full', 5.0, 6.0, 'wmla', '{\"args\": \"x\"}', 5)",
            [json.dumps(SEARCH)],
        )
        values = "?, '{\"x\": 1}', '{\"x\": \"a\"}', 27, ?, ?, ?, ?, ?, ?, 'why', 8.0, 9.0"
        connection.executemany(
            f"INSERT INTO trials VALUES ('hbbbbbbbb', {values})",
            [
                (0, 7.1, "exec", "driver", "jbbbbbbbb", "succeeded", 0.5),
                (1, 7.2, None, None, None, "queued", None),
                (2, 7.3, None, None, None, "queued", None),
                (3, 7.4, None, None, None, "failed", None),
            ],
        )
        connection.execute("UPDATE jobs SET idempotency_key = 'hbbbbbbbb 1 7.2'")
        connection.execute(
            "INSERT INTO execs (id, job, driver, args) VALUES ('mine', 'jraaaaaaa', 'its', '')"
        )
        connection.execute("UPDATE runs SET job = 'jaaaaaaaa'")
        connection.commit()
    store = Store.opened(f"sqlite:///{path}")
    first, second = store.experiments.searches()
    assert (first.id, second.name) == ("hbbbbbbbb", "rates")  # in the order of their creation
    assert store.experiments.get("xaaaaaaaa") is not None
    assert [one.job for one in store.experiments.runs("xaaaaaaaa", None, 9)] == ["jaaaaaaaa"]
    assert len(store.experiments.trainings("xaaaaaaaa")) == 1
    known = {
        "metric": "loss", "objective": "maximize", "algorithm": "grid", "max_trials": 5, "generator": SEARCH,
        "template": {"args": "x"}, "kind": "wmla", "file_name": "code", "state": "waiting", "wanted": "stop",
        "reason": "full", "seed": 3, "total": 5, "created": 4.5, "started": 5.0, "ended": 6.0,
        "project": None,
    }  # fmt: skip
    assert {name: getattr(first, name) for name in known} == known
    done, submitted, failed = store.experiments.trials("hbbbbbbbb")
    known = {
        "exec": "exec", "driver": "driver", "job": "jbbbbbbbb", "metric": 0.5, "point": {"x": 1},
        "parameters": {"x": "a"}, "budget": 27, "reason": "why", "created": 7.1, "started": 8.0, "ended": 9.0,
        "owner": "ann",
    }  # fmt: skip
    assert {name: getattr(done, name) for name in known} == known
    assert (submitted.place, submitted.exec, submitted.driver, submitted.job) == (
        1, "mine", "its", "jraaaaaaa",
    )  # fmt: skip
    assert (failed.place, failed.state, failed.job) == (3, TrialState.FAILED, None)
    store.close()


def tables_that_number_on(connection: Connection) -> set[str]:
    """Tables that give the number of a deleted row to no other; Alembic does not compare that."""
    found = connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE sql LIKE '%AUTOINCREMENT%'")
    return set(found.scalars())


@pytest.mark.parametrize("revision, error", [("0016", OlderDatabaseError), ("9999", NewerDatabaseError)])
def test_other_databases_are_left_alone(database_url: str, revision: str, error: type[Exception]) -> None:
    database = Database(database_url)
    migrate(database)
    with database.writing() as connection:
        connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{revision}'")
    with pytest.raises(error, match=revision):
        migrate(database)
    database.close()
