"""The first form that is migrated. A new database gets the newest form at once."""

revision = "0017"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing: `migrate` makes the tables of a new database in their newest form."""
