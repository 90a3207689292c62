"""Tell sessions from the tokens that users make."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. Sessions were called so, as others may be, and lasted exactly eight hours."""
    op.add_column("tokens", sa.Column("is_session", sa.Boolean(), nullable=False, server_default=sa.false()))
    tokens = sa.table("tokens", *map(sa.column, ("name", "created", "expires", "is_session")))
    lasts = tokens.c.expires - tokens.c.created
    is_session = sa.and_(tokens.c.name == "session", lasts.between(28799.999, 28800.001))
    op.execute(sa.update(tokens).where(is_session).values(is_session=sa.true()))
