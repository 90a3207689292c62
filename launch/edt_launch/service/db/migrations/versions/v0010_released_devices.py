"""Let the history of allocations tell what workers have yet to leave, and how many have failed."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns. Of earlier changes, devices count as left at once."""
    op.add_column("allocations", sa.Column("leaving", sa.JSON(), nullable=False, server_default="[]"))
    op.add_column("allocations", sa.Column("lost", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("jobs", sa.Column("losses", sa.Integer(), nullable=False, server_default="0"))
