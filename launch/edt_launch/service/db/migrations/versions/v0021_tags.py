"""Keep tags of jobs, and comments on them."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    op.add_column("jobs", sa.Column("tags", sa.JSON(), nullable=False, server_default="[]"))
    op.add_column("jobs", sa.Column("comment", sa.Text(), nullable=False, server_default=""))
