"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "allocations",
        sa.Column(
            "number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("time", sa.Float(), nullable=False),
        sa.Column("job", sa.String(length=16), nullable=False),
        sa.Column("owner", sa.String(length=64), nullable=False),
        sa.Column("before", sa.Integer(), nullable=False),
        sa.Column("after", sa.Integer(), nullable=False),
        sa.Column("devices", sa.JSON(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_allocations"),
    )
    op.create_index("ix_allocations_job", "allocations", ["job"], unique=False)
    op.create_index("ix_allocations_time", "allocations", ["time"], unique=False)
    op.create_table(
        "hosts",
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("devices", sa.JSON(), nullable=False),
        sa.Column("is_up", sa.Boolean(), nullable=False),
        sa.Column("is_draining", sa.Boolean(), nullable=False),
        sa.Column("source", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("changed", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_hosts"),
    )
    op.create_table(
        "jobs",
        sa.Column(
            "number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("owner", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("command", sa.JSON(), nullable=False),
        sa.Column("directory", sa.Text(), nullable=False),
        sa.Column("min", sa.Integer(), nullable=False),
        sa.Column("max", sa.Integer(), nullable=False),
        sa.Column("allowed", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("weight", sa.Float(), nullable=False),
        sa.Column("environment", sa.JSON(), nullable=False),
        sa.Column("checkpoint_interval", sa.Float(), nullable=True),
        sa.Column("max_restarts", sa.Integer(), nullable=True),
        sa.Column("wanted", sa.String(length=16), nullable=False),
        sa.Column("idempotency_key", sa.String(length=128), nullable=True),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("why", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("failure", sa.Text(), nullable=True),
        sa.Column("submitted", sa.Float(), nullable=False),
        sa.Column("started", sa.Float(), nullable=True),
        sa.Column("ended", sa.Float(), nullable=True),
        sa.Column("waiting_since", sa.Float(), nullable=True),
        sa.Column("running_since", sa.Float(), nullable=True),
        sa.Column("resized", sa.Float(), nullable=True),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("target", sa.Integer(), nullable=False),
        sa.Column("share", sa.Float(), nullable=True),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("held", sa.JSON(), nullable=False),
        sa.Column("leaving", sa.JSON(), nullable=False),
        sa.Column("launcher_pid", sa.Integer(), nullable=True),
        sa.Column("launcher_started", sa.Float(), nullable=True),
        sa.Column("restarts", sa.Integer(), nullable=False),
        sa.Column("resizes", sa.Integer(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=True),
        sa.Column("total_steps", sa.BigInteger(), nullable=True),
        sa.Column("loss", sa.Float(), nullable=True),
        sa.Column("throughput", sa.Float(), nullable=True),
        sa.Column("service", sa.Float(), nullable=False),
        sa.Column("entitlement", sa.Float(), nullable=False),
        sa.Column("usage_at", sa.Float(), nullable=False),
        sa.Column("resize_cost", sa.Float(), nullable=False),
        sa.Column("speedup", sa.JSON(), nullable=False),
        sa.Column("notes", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_jobs"),
        sa.UniqueConstraint("id", name="uq_jobs_id"),
        sa.UniqueConstraint("owner", "idempotency_key", name="uq_jobs_owner_idempotency_key"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_jobs_ended", "jobs", ["ended"], unique=False)
    op.create_index("ix_jobs_state_number", "jobs", ["state", "number"], unique=False)
    op.create_table(
        "memory",
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("value", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_memory"),
    )
    op.create_table(
        "shares",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("parent", sa.String(length=64), nullable=True),
        sa.Column("weight", sa.Float(), nullable=False),
        sa.Column("guarantee", sa.Float(), nullable=False),
        sa.Column("limit", sa.Float(), nullable=True),
        sa.Column("lends", sa.Boolean(), nullable=False),
        sa.Column("policy", sa.String(length=16), nullable=False),
        sa.Column("half_life", sa.Float(), nullable=False),
        sa.Column("service", sa.Float(), nullable=False),
        sa.Column("entitlement", sa.Float(), nullable=False),
        sa.Column("usage_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_shares"),
    )
    op.create_table(
        "users",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("is_admin", sa.Boolean(), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_users"),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("user", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("expires", sa.Float(), nullable=True),
        sa.Column("revoked", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(["user"], ["users.name"], name="fk_tokens_user", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.UniqueConstraint("hash", name="uq_tokens_hash"),
    )
    op.create_index("ix_tokens_user", "tokens", ["user"], unique=False)
    op.create_table(
        "transitions",
        sa.Column(
            "number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("time", sa.Float(), nullable=False),
        sa.Column("job", sa.String(length=16), nullable=False),
        sa.Column("before", sa.String(length=16), nullable=True),
        sa.Column("after", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["job"], ["jobs.id"], name="fk_transitions_job", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("number", name="pk_transitions"),
    )
    op.create_index("ix_transitions_job", "transitions", ["job"], unique=False)
