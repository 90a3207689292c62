"""Keep the digest of each job's code."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. Of jobs that there are, the digests are not known."""
    op.add_column("jobs", sa.Column("code_digest", sa.String(64), nullable=False, server_default=""))
