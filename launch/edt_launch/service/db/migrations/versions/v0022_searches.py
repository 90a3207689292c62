"""Make searches experiments, and their trials runs."""

import base64
import secrets
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")
JSON = sa.JSON(none_as_null=True)

ALIKE = ("id", "name", "owner", "created")
"""Columns that searches and experiments had in common."""
OF_SEARCHES = (
    "kind",
    "template",
    "file_name",
    "seed",
    "total",
    "wanted",
    "state",
    "reason",
    "started",
    "ended",
)
OF_EXPERIMENTS = (
    "project", "description", "source", "command", "metric", "objective", "changed", "changed_by", "version",
)  # fmt: skip
OF_RUNS = (
    "id", "experiment", "definition", "name", "code", "digest", "job", "owner", "created", "spec", "outcome",
)  # fmt: skip
OF_TRIALS = (
    "point", "parameters", "budget", "exec", "driver", "state", "metric", "reason", "started", "ended",
)  # fmt: skip


def _experiments() -> sa.Table:
    table = op.create_table(
        "experiments",
        sa.Column("id", sa.String(16), nullable=False),
        sa.Column("project", sa.String(16)),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("command", JSON, nullable=False),
        sa.Column("metric", sa.String(128), nullable=False),
        sa.Column("objective", sa.String(16), nullable=False),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("changed", sa.Float(), nullable=False),
        sa.Column("changed_by", sa.String(64), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("algorithm", sa.String(16), nullable=False),
        sa.Column("generator", JSON, nullable=False),
        sa.Column("max_trials", sa.Integer()),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("template", JSON, nullable=False),
        sa.Column("file_name", sa.String(255), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("total", sa.Integer()),
        sa.Column("wanted", sa.String(16), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("started", sa.Float()),
        sa.Column("ended", sa.Float()),
        sa.ForeignKeyConstraint(["project"], ["projects.id"]),
        sa.UniqueConstraint("id"),
        sa.UniqueConstraint("project", "name"),
        sqlite_autoincrement=True,
    )
    for name in ("owner", "state"):
        op.create_index(op.f(f"ix_experiments_{name}"), "experiments", [name])
    none = sa.text("project IS NULL")
    op.create_index(
        "uq_experiments_name_without_project",
        "experiments",
        ["name"],
        unique=True,
        sqlite_where=none,
        postgresql_where=none,
    )
    return table


def _trainings() -> sa.Table:
    table = op.create_table(
        "trainings",
        sa.Column("experiment", sa.String(16), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("definition", sa.String(16), nullable=False),
        sa.Column("distribution", sa.String(16), nullable=False),
        sa.Column("devices", sa.Integer(), nullable=False),
        sa.Column("least", sa.Integer(), nullable=False),
        sa.Column("most", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("experiment", "place"),
        sa.ForeignKeyConstraint(["experiment"], ["experiments.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["definition"], ["definitions.id"]),
    )
    op.create_index(op.f("ix_trainings_definition"), "trainings", ["definition"])
    return table


def _runs() -> sa.Table:
    table = op.create_table(
        "runs",
        sa.Column("id", sa.String(16), nullable=False),
        sa.Column("experiment", sa.String(16), nullable=False),
        sa.Column("definition", sa.String(16), nullable=False),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("code", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("job", sa.String(16)),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("created", sa.Float(), nullable=False),
        sa.Column("spec", JSON, nullable=False),
        sa.Column("outcome", JSON),
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("place", sa.Integer()),
        sa.Column("point", JSON, nullable=False),
        sa.Column("parameters", JSON, nullable=False),
        sa.Column("budget", sa.BigInteger(), nullable=False),
        sa.Column("exec", sa.String(128)),
        sa.Column("driver", sa.String(128)),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("metric", sa.Float()),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("started", sa.Float()),
        sa.Column("ended", sa.Float()),
        sa.ForeignKeyConstraint(["experiment"], ["experiments.id"], ondelete="CASCADE"),
        *(sa.UniqueConstraint(name) for name in ("id", "job")),
        sa.UniqueConstraint("experiment", "place"),
    )
    op.create_index(op.f("ix_runs_owner"), "runs", ["owner"])
    return table


def upgrade() -> None:
    """Make the three tables anew, fill them, and drop the two of searches.

    SQLite's foreign keys would delete what belongs to a table that is dropped: children are dropped first.
    """
    for name in ("experiments", "trainings", "runs"):
        op.execute(f"CREATE TABLE old_{name} AS SELECT * FROM {name}")
    for name in ("runs", "trainings", "experiments"):
        op.drop_table(name)
    _fill_experiments(_experiments())
    trainings = _trainings()
    names = [column.name for column in trainings.c]
    _copy(
        trainings,
        names,
        sa.select(*(sa.column(name) for name in names)).select_from(sa.table("old_trainings")),
    )
    _fill_runs(_runs())
    for name in ("old_runs", "old_trainings", "old_experiments", "trials", "searches"):
        op.drop_table(name)


def _copy(into: sa.Table, names: list[str], query: Any) -> None:
    op.execute(sa.insert(into).from_select(names, query))


def _text(text: str) -> sa.ColumnElement[Any]:
    return sa.literal_column(f"'{text}'")


NO_SEARCH = {
    **dict.fromkeys(("algorithm", "kind", "file_name", "reason"), _text("")),
    **dict.fromkeys(("generator", "template"), _text("{}")),
    **dict.fromkeys(("max_trials", "total", "started", "ended"), sa.null()),
    "seed": sa.literal_column("0"),
    "wanted": _text("run"),
    "state": _text("queued"),
}
"""What experiments have in the columns of searches."""


def _fill_experiments(experiments: sa.Table) -> None:
    """In the order in which they were made."""
    definition: sa.ColumnElement[Any] = sa.column("definition", JSON)
    searched = {name: sa.column(name) for name in (*ALIKE, *OF_SEARCHES)} | {
        "project": sa.null(),
        "description": _text(""),
        "source": _text(""),
        "command": _text("[]"),
        **{name: definition[name].as_string() for name in ("metric", "objective", "algorithm")},
        "changed": sa.column("created"),
        "changed_by": sa.column("owner"),
        "version": sa.literal_column("1"),
        "generator": definition,
        "max_trials": definition["max_trials"].as_integer(),
        "number": sa.column("number"),
    }
    own: dict[str, Any] = {name: sa.column(name) for name in (*ALIKE, *OF_EXPERIMENTS, "number")} | NO_SEARCH
    names = [name for name in own if name != "number"]
    order = (*names, "number")
    both = sa.union_all(
        sa.select(*(own[name].label(name) for name in order)).select_from(sa.table("old_experiments")),
        sa.select(*(searched[name].label(name) for name in order)).select_from(sa.table("searches")),
    ).subquery()
    query = sa.select(*(both.c[name] for name in names)).order_by(both.c.created, both.c.number)
    _copy(experiments, names, query)


def _fill_runs(runs: sa.Table) -> None:
    """Runs, then trials; one that was chosen and never submitted is left out: it is chosen again."""
    empty = {"point": _text("{}"), "parameters": _text("{}"), "budget": sa.literal_column("0")}
    empty |= {"state": _text("queued"), "reason": _text("")}
    values: dict[str, Any] = {name: sa.column(name) for name in OF_RUNS} | empty
    query = sa.select(*(value.label(name) for name, value in values.items()))
    query = query.select_from(sa.table("old_runs")).order_by(sa.column("number"))
    _copy(runs, list(values), query)

    text = sa.String()
    trials = sa.table(
        "trials", *(sa.column(name) for name in ("search", "number", "created", "job", *OF_TRIALS))
    )
    searches = sa.table("searches", *(sa.column(name, text) for name in ("id", "name", "owner")))
    key = (trials.c.search == sa.bindparam("of"), trials.c.number == sa.bindparam("at"))
    made = {
        "id": sa.bindparam("new", type_=text),
        "experiment": trials.c.search,
        "definition": _text(""),
        "name": sa.func.substr(searches.c.name + _text("-") + sa.cast(trials.c.number, text), 1, 128),
        "code": sa.literal_column("0"),
        "digest": _text(""),
        "owner": searches.c.owner,
        "created": trials.c.created,
        "spec": _text("{}"),
        "place": trials.c.number,
        **{name: trials.c[name] for name in OF_TRIALS},
        "job": sa.bindparam("its_job", type_=text),
        "exec": sa.bindparam("its_exec", type_=text),
        "driver": sa.bindparam("its_driver", type_=text),
    }
    one = sa.select(*(value.label(name) for name, value in made.items()))
    one = one.select_from(trials.join(searches, searches.c.id == trials.c.search)).where(*key)
    statement = sa.insert(runs).from_select(list(made), one)
    connection = op.get_bind()
    known = connection.execute(
        sa.select(
            trials.c.search, trials.c.number, trials.c.created, trials.c.job, trials.c.exec, trials.c.driver,
            trials.c.state, searches.c.owner,
        )
        .join(searches, searches.c.id == trials.c.search)
        .order_by(trials.c.created, trials.c.search, trials.c.number)
    ).all()  # fmt: skip
    for search, number, created, job, exec_, driver, state, owner in known:
        its = {"its_job": job, "its_exec": exec_, "its_driver": driver}
        if job is None and state in ("queued", "running"):
            its = _submitted(connection, owner, f"{search} {number} {created!r}")
            if not its:
                continue
        new = "r" + base64.b32encode(secrets.token_bytes(5)).decode().lower()
        connection.execute(statement, {"new": new, "of": search, "at": number, **its})


def _submitted(connection: sa.Connection, owner: str, key: str) -> dict[str, Any]:
    """The job of a trial, and its other names, if the service was killed just after it had submitted it."""
    jobs = sa.table("jobs", *(sa.column(name) for name in ("id", "owner", "idempotency_key")))
    execs = sa.table("execs", *(sa.column(name) for name in ("job", "id", "driver")))
    row = connection.execute(
        sa.select(jobs.c.id, execs.c.id, execs.c.driver)
        .join(execs, execs.c.job == jobs.c.id, isouter=True)
        .where(jobs.c.owner == owner, jobs.c.idempotency_key == key)
    ).first()
    return {} if row is None else {"its_job": row[0], "its_exec": row[1], "its_driver": row[2]}
