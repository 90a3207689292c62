"""Projects, training definitions, experiments and runs."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "projects",
        _text("id", 16), _text("name", 128), _text("description"), *_owned(), *_changed(), _number(),
        sa.UniqueConstraint("id", name="uq_projects_id"),
        sa.UniqueConstraint("name", name="uq_projects_name"),
    )  # fmt: skip
    op.create_table(
        "members",
        _text("project", 16, primary_key=True), _text("user", 64, primary_key=True), _text("role", 16),
        _key("members", "project", "projects.id", ondelete="CASCADE"),
        _key("members", "user", "users.name", ondelete="CASCADE"),
    )  # fmt: skip
    op.create_table(
        "definitions",
        _text("id", 16), _text("project", 16), _text("name", 128), _text("description"),
        _text("framework", 16), sa.Column("command", sa.JSON(), nullable=False), *_owned(), *_changed(),
        _integer("code"), _number(),
        _key("definitions", "project", "projects.id"),
        sa.UniqueConstraint("id", name="uq_definitions_id"),
        sa.UniqueConstraint("project", "name", name="uq_definitions_project_name"),
    )  # fmt: skip
    op.create_table(
        "codes",
        _text("definition", 16, primary_key=True), _integer("place", primary_key=True), _text("digest", 64),
        _text("name", 128), sa.Column("size", sa.BigInteger(), nullable=False), *_owned(),
        _key("codes", "definition", "definitions.id", ondelete="CASCADE"),
        sa.UniqueConstraint("definition", "digest", name="uq_codes_definition_digest"),
    )  # fmt: skip
    op.create_table(
        "experiments",
        _text("id", 16), _text("project", 16), _text("name", 128), _text("description"), _text("source"),
        sa.Column("command", sa.JSON(), nullable=False), _text("metric", 128), _text("objective", 16),
        *_owned(), *_changed(), _number(),
        _key("experiments", "project", "projects.id"),
        sa.UniqueConstraint("id", name="uq_experiments_id"),
        sa.UniqueConstraint("project", "name", name="uq_experiments_project_name"),
    )  # fmt: skip
    op.create_table(
        "trainings",
        _text("experiment", 16, primary_key=True), _integer("place", primary_key=True),
        _text("definition", 16), _text("distribution", 16), _integer("devices"), _integer("least"),
        _integer("most"),
        _key("trainings", "experiment", "experiments.id", ondelete="CASCADE"),
        _key("trainings", "definition", "definitions.id"),
    )  # fmt: skip
    op.create_table(
        "runs",
        _text("id", 16), _text("experiment", 16), _text("definition", 16), _text("name", 128),
        _integer("code"), _text("digest", 64), _text("job", 16), *_owned(),
        sa.Column("spec", sa.JSON(), nullable=False), sa.Column("outcome", sa.JSON(), nullable=True),
        _number(),
        _key("runs", "experiment", "experiments.id", ondelete="CASCADE"),
        sa.UniqueConstraint("id", name="uq_runs_id"),
        sa.UniqueConstraint("job", name="uq_runs_job"),
    )  # fmt: skip
    for table in ("projects", "definitions", "codes", "experiments", "runs"):
        op.create_index(f"ix_{table}_owner", table, ["owner"])
    for table, column in (("members", "user"), ("trainings", "definition"), ("runs", "experiment")):
        op.create_index(f"ix_{table}_{column}", table, [column])


def _text(name: str, length: int | None = None, primary_key: bool = False) -> "sa.Column[str]":
    kind = sa.Text() if length is None else sa.String(length)
    return sa.Column(name, kind, primary_key=primary_key, nullable=False)


def _integer(name: str, primary_key: bool = False) -> "sa.Column[int]":
    return sa.Column(name, sa.Integer(), primary_key=primary_key, autoincrement=False, nullable=False)


def _number() -> "sa.Column[int]":
    return sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True)


def _owned() -> "tuple[sa.Column[str], sa.Column[float]]":
    return _text("owner", 64), sa.Column("created", sa.Float(), nullable=False)


def _changed() -> "tuple[sa.Column[float], sa.Column[str], sa.Column[int]]":
    return sa.Column("changed", sa.Float(), nullable=False), _text("changed_by", 64), _integer("version")


def _key(table: str, column: str, other: str, ondelete: str | None = None) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [other], name=f"fk_{table}_{column}", ondelete=ondelete)
