"""Passwords, and the names by which WMLA's clients know jobs."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column and the table."""
    op.add_column("users", sa.Column("password", sa.Text(), nullable=True))
    op.create_table(
        "execs",
        sa.Column(
            "number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("id", sa.String(length=128), nullable=True),
        sa.Column("job", sa.String(length=16), nullable=True),
        sa.Column("driver", sa.String(length=64), nullable=True),
        sa.Column("app", sa.String(length=128), nullable=True),
        sa.Column("group", sa.String(length=128), nullable=True),
        sa.Column("args", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["job"], ["jobs.id"], name="fk_execs_job", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("number", name="pk_execs"),
        sa.UniqueConstraint("id", name="uq_execs_id"),
        sa.UniqueConstraint("job", name="uq_execs_job"),
        sa.UniqueConstraint("driver", name="uq_execs_driver"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_execs_app", "execs", ["app"], unique=False)
    op.create_index("ix_execs_group", "execs", ["group"], unique=False)
