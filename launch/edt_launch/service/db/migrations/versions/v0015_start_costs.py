"""Keep what a start costs each job."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. Of jobs that there are, it is learned with their next start."""
    op.add_column("jobs", sa.Column("start_cost", sa.Float(), nullable=False, server_default="5.0"))
