"""Find the trial of a job."""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add an index."""
    op.create_index("ix_trials_job", "trials", ["job"], unique=False)
