"""Let a browser's session end when it is not used, and a token log a browser on once."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns. Tokens that there are have no such end, and are no such tokens."""
    op.add_column("tokens", sa.Column("idle_until", sa.Float(), nullable=True))
    op.add_column("tokens", sa.Column("is_once", sa.Boolean(), nullable=False, server_default=sa.false()))
