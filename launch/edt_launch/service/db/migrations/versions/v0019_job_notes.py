"""Give what the loop remembers of a job columns of its own."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

LIVE = ("starting", "running", "pausing", "suspending", "stopping")
"""States in which a job has a launcher."""

NULLABLE = {"granted_at": "written", "asked": "asked", "signalled": "signalled_at"}
TEXTS = {"trouble": "trouble", "delay": "slow"}
COUNTS = {"launchers_lost": "lost", "starts_anew": "again"}
LISTS = {"suspended": "suspended", "unreachable": "unreachable"}
"""Columns, and what they were called before."""


def upgrade() -> None:
    """Add the columns, fill them, and drop the one that had all of it."""
    json = sa.JSON(none_as_null=True)
    columns: list[sa.Column[Any]] = [
        sa.Column("bounds", json),
        sa.Column("is_array_full", sa.Boolean(), nullable=False, server_default=sa.false()),
        *(sa.Column(name, sa.Float()) for name in NULLABLE),
        *(sa.Column(name, sa.Text(), nullable=False, server_default="") for name in TEXTS),
        *(sa.Column(name, sa.Integer(), nullable=False, server_default="0") for name in COUNTS),
        *(sa.Column(name, json, nullable=False, server_default="[]") for name in LISTS),
    ]
    for column in columns:
        op.add_column("jobs", column)
    known: list[sa.ColumnClause[Any]] = [
        sa.column("id", sa.String()),
        sa.column("state", sa.String()),
        sa.column("notes", json),
    ]
    jobs = sa.table("jobs", *known, *(sa.column(column.name, column.type) for column in columns))
    connection = op.get_bind()
    for job, state, notes in connection.execute(sa.select(jobs.c.id, jobs.c.state, jobs.c.notes)).all():
        values = {
            name: notes[before]
            for name, before in {**NULLABLE, **TEXTS, **COUNTS, **LISTS}.items()
            if before in notes
        }
        if state in LIVE and "bounds" in notes:
            values["bounds"] = notes["bounds"]
        if notes.get("array"):
            values["is_array_full"] = True
        if values:
            connection.execute(sa.update(jobs).where(jobs.c.id == job).values(values))
    # Not in a batch: SQLite's foreign keys would delete what belongs to a table that is made anew.
    op.drop_column("jobs", "notes")
