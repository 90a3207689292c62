"""A job as the database has it."""

from typing import Any

from edt_launch.service.db.store import Store
from edt_launch.service.experiments.records import RunRecord
from edt_launch.service.experiments.stores.experiments import add_run
from edt_launch.service.jobs.records import JobRecord


def record(**fields: Any) -> JobRecord:
    """A job of ann, with other fields as given."""
    return JobRecord("jaaaaaaaa", "ann", ("python", "train me.py"), 1, 4, 5.0, **fields)


def write_run(store: Store, run: RunRecord) -> None:
    """Store a run whose job is there, or was."""
    with store.experiments._database.writing() as connection:
        add_run(connection, run)
