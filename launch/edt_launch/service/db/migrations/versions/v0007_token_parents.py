"""Tell which token a token was made with. Of older ones nobody knows."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("tokens", sa.Column("parent", sa.String(length=16), nullable=True))
    op.create_index("ix_tokens_parent", "tokens", ["parent"], unique=False)
