import json

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, text

from edt_launch.service.db.engine import Database
from edt_launch.service.db.migrate import NewerDatabaseError, migrate
from edt_launch.service.db.store import Store
from edt_launch.service.db.tables import metadata
from edt_launch.service.experiments.searches.records import SearchState, TrialState
from edt_launch.service.experiments.searches.spec import Algorithm, Objective, Parameter, SearchSpec
from edt_launch.service.jobs.records import JobRecord


def test_migrations_lead_to_the_tables(database_url: str) -> None:
    database = Database(database_url)
    assert migrate(database)
    with database.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
    assert not migrate(database)
    database.close()


OLD = {
    "modelSpec": {"args": "--x", "sigName": ""},
    "algoDef": {
        "algorithm": "Hyperband", "objectiveMetric": "loss", "objective": "maximize", "maxRunTime": -1,
        "maxJobNum": 7, "maxParalleJobNum": 3, "hyperbandEta": 3.0,
        "algoParams": [
            {"name": "ResourceName", "value": "epochs"}, {"name": "resourceValue", "value": "9"},
            {"name": "WarmUp", "value": "6.0"}, {"name": "eta", "value": "2"}, {"name": "eta", "value": "4"},
        ],
    },
    "hyperParams": [
        {"name": "rate", "type": "Range", "dataType": "double", "minDbVal": -3.0, "maxDbVal": -1.0,
         "power": 10.0},
        {"name": "depth", "type": "Range", "dataType": "int", "minIntVal": 1, "maxIntVal": 9, "step": 2.0},
        {"name": "units", "type": "Discrete", "dataType": "int", "discreteIntVal": [16, 32, 16]},
    ],
    "experiments": [],
}  # fmt: skip
TABLES_SINCE = ("runs", "trainings", "experiments", "codes", "definitions", "members", "projects", "audit")
COLUMNS_SINCE = {
    "tokens": ("idle_until", "is_once", "scope", "used"),
    "searches": ("kind", "template", "total"),
    "allocations": ("leaving", "lost"),
    "hosts": ("lost",),
    "jobs": (
        "losses",
        "code_digest",
        "start_cost",
        "attained",
        "restartable",
        "preemptible",
        "may_lose",
        "can_save",
        "grace",
        "warm_start",
        "time_limit",
        "ran",
        "begin",
        "after",
        "array_id",
        "array_index",
        "array_limit",
    ),
}


def go_back(connection: Connection) -> None:
    """Bring the tables to the form that they had in version 0007, as far as the test needs it."""
    for table in TABLES_SINCE:
        connection.execute(text(f"DROP TABLE {table}"))
    for table, names in COLUMNS_SINCE.items():
        for name in names:
            connection.execute(text(f"ALTER TABLE {table} DROP COLUMN {name}"))
    connection.execute(text("UPDATE alembic_version SET version_num = '0007'"))


def test_jobs_and_searches_of_an_earlier_version_go_on(database_url: str) -> None:
    database = Database(database_url)
    migrate(database)
    store = Store(database)
    store.jobs.add(JobRecord("jaaaaaaaa", "ann", ("x",), 1, 1, 2.0))
    with database.writing() as connection:
        go_back(connection)
        connection.execute(
            text(
                "INSERT INTO searches (id, name, owner, definition, file_name, seed, created, wanted, state,"
                " reason) VALUES ('haaaaaaaa', 'h', 'ann', :old, 'm.tar', 1, 1.0, 'run', 'RECOVERPEND', '')"
            ),
            {"old": json.dumps(OLD)},
        )
        connection.execute(
            text(
                "INSERT INTO trials (search, number, point, parameters, budget, created, state, reason)"
                " VALUES ('haaaaaaaa', 0, '{}', '{}', 0, 1.0, 'KILLED', '')"
            )
        )
    assert migrate(database)
    assert store.jobs.ids() == {"jaaaaaaaa"}
    (found,) = store.searches.live()
    assert (found.kind, found.state) == ("wmla", SearchState.WAITING)
    assert found.template == {"args": "--x", "sig_name": ""}
    assert store.searches.trials(found.id)[0].state is TrialState.STOPPED
    assert SearchSpec.model_validate(found.definition) == SearchSpec(
        metric="loss", objective=Objective.MAXIMIZE, algorithm=Algorithm.HYPERBAND, max_trials=7,
        max_parallel=3, budget="epochs", max_budget=9, eta=2.0, warm_up=6,
        parameters={
            "rate": Parameter(min=-3.0, max=-1.0, base=10.0),
            "depth": Parameter(type="int", min=1, max=9, step=2.0),
            "units": Parameter(values=(16, 32)),
        },
    )  # fmt: skip
    database.close()


def test_a_newer_database_is_left_alone(database_url: str) -> None:
    database = Database(database_url)
    migrate(database)
    with database.writing() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(NewerDatabaseError, match="9999"):
        migrate(database)
    database.close()
