"""How WMLA programs are run."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    op.add_column("jobs", sa.Column("framework", sa.String(length=16), nullable=True))
    op.add_column("jobs", sa.Column("data_dir", sa.Text(), nullable=True))
