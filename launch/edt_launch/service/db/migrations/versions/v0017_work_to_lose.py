"""Keep whether a job can save its work, may begin again, and may be suspended; how long it may run."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns. A job that has reported steps has an elastic function."""
    for name, default in (
        ("restartable", sa.false()),
        ("preemptible", sa.true()),
        ("may_lose", sa.false()),
        ("can_save", sa.false()),
    ):
        op.add_column("jobs", sa.Column(name, sa.Boolean(), nullable=False, server_default=default))
    op.add_column("jobs", sa.Column("grace", sa.Float(), nullable=False, server_default="30.0"))
    op.add_column("jobs", sa.Column("warm_start", sa.Boolean(), nullable=False, server_default=sa.true()))
    for name in ("time_limit", "ran"):
        op.add_column("jobs", sa.Column(name, sa.Float(), nullable=False, server_default="0.0"))
    op.add_column("jobs", sa.Column("begin", sa.Float(), nullable=False, server_default="0.0"))
    op.add_column("jobs", sa.Column("after", sa.JSON(none_as_null=True), nullable=False, server_default="[]"))
    op.add_column("jobs", sa.Column("array_id", sa.String(64), nullable=False, server_default=""))
    for name in ("array_index", "array_limit"):
        op.add_column("jobs", sa.Column(name, sa.Integer(), nullable=True))
    jobs = sa.table("jobs", sa.column("can_save", sa.Boolean), sa.column("step"))
    op.execute(sa.update(jobs).where(jobs.c.step.is_not(None)).values(can_save=True))
