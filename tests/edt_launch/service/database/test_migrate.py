import json
from collections.abc import Mapping, Sequence

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, text

from edt_launch.service.database.engine import Database
from edt_launch.service.database.migrate import NewerDatabaseError, migrate
from edt_launch.service.database.search_records import SearchState, TrialState
from edt_launch.service.database.searches import Searches
from edt_launch.service.database.tables import metadata
from edt_launch.service.search_spec import Algorithm, Objective, Parameter, SearchSpec


def test_migrations_lead_to_the_tables(database_url: str) -> None:
    database = Database(database_url)
    assert migrate(database)
    with database.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
    assert not migrate(database)
    database.close()


NEW = ("kind", "template", "total")
NEWEST = ("idle_until", "is_once", "scope", "used")
LATEST = {"allocations": ("leaving", "lost"), "jobs": ("losses", "code_digest", "start_cost", "attained")}


def go_back(connection: Connection, version: str, columns: Mapping[str, Sequence[str]]) -> None:
    """Bring the tables to the form that they had in a version, as far as the test needs it."""
    for table in ("runs", "trainings", "experiments", "codes", "definitions", "members", "projects", "audit"):
        connection.execute(text(f"DROP TABLE {table}"))
    if "parent" in columns["tokens"]:
        connection.execute(text("DROP INDEX ix_tokens_parent"))
    for table, names in columns.items():
        for name in names:
            connection.execute(text(f"ALTER TABLE {table} DROP COLUMN {name}"))
    connection.execute(text(f"UPDATE alembic_version SET version_num = '{version}'"))


ALGO = {
    "algorithm": "Random", "objectiveMetric": "loss", "objective": "maximize", "maxRunTime": -1,
    "maxJobNum": 7, "maxParalleJobNum": 3, "hyperbandEta": 3.0, "algoParams": [],
}  # fmt: skip
HYPERBAND = ALGO | {
    "algorithm": "Hyperband",
    "algoParams": [
        {"name": "ResourceName", "value": "epochs"}, {"name": "resourceValue", "value": "9"},
        {"name": "RandomSeed", "value": "-1"}, {"name": "WarmUp", "value": "6.0"},
        {"name": "InitPoints", "value": "4"}, {"name": "eta", "value": "2"}, {"name": "eta", "value": "4"},
    ],
}  # fmt: skip
PARAMS = [
    {
        "name": "rate",
        "type": "Range",
        "dataType": "double",
        "minDbVal": -3.0,
        "maxDbVal": -1.0,
        "power": 10.0,
    },
    {"name": "depth", "type": "Range", "dataType": "int", "minIntVal": 1, "maxIntVal": 9, "step": 2.0},
    {"name": "units", "type": "Discrete", "dataType": "int", "discreteIntVal": [16, 32, 16]},
]
FIXED = [
    {"name": "rate", "dataType": "double", "fixedVal": "1"},
    {"name": "units", "dataType": "int", "fixedVal": "16"}
]  # fmt: skip


def test_searches_of_earlier_versions_go_on(database_url: str) -> None:
    old = {
        "haaaaaaaa": {"algoDef": HYPERBAND, "hyperParams": PARAMS, "experiments": []},
        "hbbbbbbbb": {
            "algoDef": ALGO | {"algorithm": "ExperimentGridSearch"},
            "hyperParams": [],
            "experiments": [{"id": 7, "hyperParams": FIXED}],
        },
    }
    database = Database(database_url)
    migrate(database)
    with database.writing() as connection:
        go_back(connection, "0007", {"tokens": NEWEST, "searches": NEW, **LATEST})
        for id_, definition in old.items():
            values = json.dumps(definition | {"modelSpec": {"args": "--x", "sigName": ""}})
            connection.execute(
                text(
                    "INSERT INTO searches (id, name, owner, definition, file_name, seed, created, wanted,"
                    " state, reason)"
                    " VALUES (:id, :id, 'ann', :values, 'm.tar', 1, 1.0, 'run', 'RECOVERPEND', '')"
                ),
                {"id": id_, "values": values},
            )
            connection.execute(
                text(
                    "INSERT INTO trials (search, number, point, parameters, budget, created, state, reason)"
                    " VALUES (:id, 0, '{}', '{}', 0, 1.0, 'KILLED', '')"
                ),
                {"id": id_},
            )
    migrate(database)
    searches = Searches(database)
    first, second = searches.live()
    assert (first.kind, first.state) == ("wmla", SearchState.WAITING)
    assert first.template == {"args": "--x", "sig_name": ""}
    assert searches.trials(first.id)[0].state is TrialState.STOPPED
    assert SearchSpec.model_validate(first.definition) == SearchSpec(
        metric="loss", objective=Objective.MAXIMIZE, algorithm=Algorithm.HYPERBAND, max_trials=7,
        max_parallel=3, budget="epochs", max_budget=9, eta=2.0, warm_up=6,
        parameters={
            "rate": Parameter(min=-3.0, max=-1.0, base=10.0),
            "depth": Parameter(type="int", min=1, max=9, step=2.0),
            "units": Parameter(values=(16, 32)),
        },
    )  # fmt: skip
    assert SearchSpec.model_validate(second.definition).configurations == ({"rate": 1.0, "units": 16},)
    database.close()


def test_a_newer_database_is_left_alone(database_url: str) -> None:
    database = Database(database_url)
    migrate(database)
    with database.writing() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(NewerDatabaseError, match="9999"):
        migrate(database)
    database.close()
