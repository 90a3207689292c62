"""Keep budgets of the owners' tree, and what has been used of them."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    op.add_column("shares", sa.Column("budget", sa.Float()))
    op.add_column("shares", sa.Column("used", sa.Float(), nullable=False, server_default="0"))
