"""Keep why a host cannot be reached."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("hosts", sa.Column("lost", sa.Text(), nullable=False, server_default=""))
