"""Keep how much of its minimum each job has had."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. For the jobs that there are, it follows from their use and their minimums."""
    op.add_column("jobs", sa.Column("attained", sa.Float(), nullable=False, server_default="0.0"))
    op.execute("UPDATE jobs SET attained = service / (CASE WHEN min > 1 THEN min ELSE 1 END)")
