"""Searches for hyperparameters."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "searches",
        sa.Column(
            "number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("owner", sa.String(length=64), nullable=False),
        sa.Column("definition", sa.JSON(), nullable=False),
        sa.Column("file_name", sa.String(length=255), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("wanted", sa.String(length=16), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("started", sa.Float(), nullable=True),
        sa.Column("ended", sa.Float(), nullable=True),
        sa.PrimaryKeyConstraint("number", name="pk_searches"),
        sa.UniqueConstraint("id", name="uq_searches_id"),
        sa.UniqueConstraint("name", name="uq_searches_name"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_searches_owner", "searches", ["owner"], unique=False)
    op.create_index("ix_searches_state", "searches", ["state"], unique=False)
    op.create_table(
        "trials",
        sa.Column("search", sa.String(length=16), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("point", sa.JSON(), nullable=False),
        sa.Column("parameters", sa.JSON(), nullable=False),
        sa.Column("budget", sa.BigInteger(), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("exec", sa.String(length=128), nullable=True),
        sa.Column("driver", sa.String(length=128), nullable=True),
        sa.Column("job", sa.String(length=16), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("metric", sa.Float(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("started", sa.Float(), nullable=True),
        sa.Column("ended", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(["search"], ["searches.id"], name="fk_trials_search", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("search", "number", name="pk_trials"),
    )
