"""Let a token only read, and tell when one was last used."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns. Tokens that there are may do everything. When they were used is known of sessions."""
    op.add_column("tokens", sa.Column("scope", sa.String(16), nullable=False, server_default="all"))
    op.add_column("tokens", sa.Column("used", sa.Float(), nullable=True))
    op.execute(sa.text("UPDATE tokens SET used = idle_until - 43200 WHERE idle_until IS NOT NULL"))
