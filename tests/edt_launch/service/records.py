"""A job as the database has it."""

from typing import Any

from edt_launch.service.database.records import JobRecord


def record(**fields: Any) -> JobRecord:
    """A job of ann, with other fields as given."""
    return JobRecord("jaaaaaaaa", "ann", ("python", "train me.py"), 1, 4, 5.0, **fields)
