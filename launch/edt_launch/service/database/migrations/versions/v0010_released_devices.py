"""Let the history of allocations tell which devices workers have yet to leave."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. Of earlier changes, devices count as left at once."""
    op.add_column("allocations", sa.Column("leaving", sa.JSON(), nullable=False, server_default="[]"))
