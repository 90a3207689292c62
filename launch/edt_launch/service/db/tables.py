"""The tables, in their newest form. `migrations` brings older databases to it; a test compares the two.

Their columns are the fields of `records`. Times are unix seconds.
"""

from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from math import inf, isinf
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Enum,
    Float,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import TypeEngine

from edt_launch.service.accounts import records as account_records
from edt_launch.service.cluster import records as cluster_records
from edt_launch.service.db.types import Big, Limit
from edt_launch.service.experiments import records as project_records
from edt_launch.service.jobs import records as job_records

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class Tuples(TypeDecorator[Any]):
    """Tuples, of tuples perhaps, as JSON."""

    impl = JSON(none_as_null=True)
    cache_ok = True

    def process_result_value(self, value: Any, dialect: object) -> Any:
        """Tuples for JSON's lists."""
        return _tuple(value) if isinstance(value, list) else value

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any] | None:
        """What reads a value; most are empty, and need not be read as JSON."""
        read = super().result_processor(dialect, coltype)
        return read and (lambda value: () if value == "[]" else read(value))


def _tuple(values: list[Any]) -> tuple[Any, ...]:
    # Every list of jobs and every picture of the pool has thousands of them.
    return tuple([_tuple(one) if one.__class__ is list else one for one in values])


class Infinite(TypeDecorator[float]):
    """A number that may be infinite, which is stored as null."""

    impl = Float
    cache_ok = True

    def process_bind_param(self, value: float | None, dialect: object) -> float | None:
        """What is stored."""
        return None if value is None or isinf(value) else value

    def process_result_value(self, value: float | None, dialect: object) -> float:
        """What was meant."""
        return inf if value is None else value


Number = BigInteger().with_variant(Integer, "sqlite")
"""SQLite counts up only what is called INTEGER."""

_TYPES: Mapping[Any, TypeEngine[Any]] = {
    bool: Boolean(),
    float: Float(),
    int: Integer(),
    str: Text(),
    tuple: Tuples(),
    Mapping: JSON(none_as_null=True),
    Big: BigInteger(),
    Limit: Infinite(),
}


def _type(hint: Any) -> TypeEngine[Any]:
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return Enum(hint, native_enum=False, length=16, values_callable=list)
    known = _TYPES.get(hint) or _TYPES.get(get_origin(hint))
    return known or String(get_args(hint)[1])


def _table(
    name: str,
    record: type,
    *more: SchemaItem,
    key: Collection[str] = ("number",),
    nullable: Collection[str] = (),
    is_number_unique: bool = False,
) -> Table:
    """A table with a column for each field of a record, and `more`.

    With `is_number_unique`, SQLite gives the number of a deleted row to no other, as PostgreSQL does.
    Columns of fields that may be None are nullable, besides those given. A key that is a number alone is
    counted up.
    """
    columns = []
    for field, hint in get_type_hints(record, include_extras=True).items():
        may_be_none = NoneType in get_args(hint)
        kind = get_args(hint)[0] if may_be_none else hint
        column = Column(
            field,
            Number if [field] == list(key) == ["number"] else _type(kind),
            primary_key=field in key,
            nullable=may_be_none or field in nullable,
        )
        columns.append(column)
    return Table(name, metadata, *columns, *more, sqlite_autoincrement=is_number_unique)


def _goes_with(column: str, other: str) -> ForeignKeyConstraint:
    return ForeignKeyConstraint([column], [other], ondelete="CASCADE")


users = _table("users", account_records.UserRecord, Column("password", Text), key=("name",))

tokens = _table(
    "tokens",
    account_records.TokenRecord,
    _goes_with("user", "users.name"),
    UniqueConstraint("hash"),
    Index(None, "user"),
    # No foreign key: sessions that are over are deleted, and what was made with them is over, too.
    Index(None, "parent"),
    key=("id",),
)

shares = _table("shares", cluster_records.ShareRecord, key=("name",), nullable=("limit", "budget"))

hosts = _table("hosts", cluster_records.HostRecord, key=("name",))

jobs = _table(
    "jobs",
    job_records.JobRecord,
    UniqueConstraint("id"),
    UniqueConstraint("owner", "idempotency_key"),
    Index(None, "state", "number"),
    Index(None, "ended"),
    is_number_unique=True,
)

transitions = _table(
    "transitions", job_records.TransitionRecord, _goes_with("job", "jobs.id"), Index(None, "job")
)

# No foreign key: who had which device when stays known when the job has been deleted.
allocations = _table("allocations", cluster_records.AllocationRecord, Index(None, "time"), Index(None, "job"))

memory = Table(
    "memory", metadata, Column("key", String(64), primary_key=True), Column("value", JSON, nullable=False)
)

audit = _table("audit", account_records.AuditRecord, Index(None, "user"))

execs = _table(
    "execs",
    job_records.ExecRecord,
    _goes_with("job", "jobs.id"),
    *(UniqueConstraint(name) for name in ("id", "job", "driver")),
    *(Index(None, name) for name in ("app", "group")),
    nullable=("id", "driver", "app"),
    is_number_unique=True,
)

projects = _table(
    "projects",
    project_records.ProjectRecord,
    *(UniqueConstraint(name) for name in ("id", "name")),
    Index(None, "owner"),
)

members = _table(
    "members",
    project_records.MemberRecord,
    _goes_with("project", "projects.id"),
    _goes_with("user", "users.name"),
    Index(None, "user"),
    key=("project", "user"),
)

definitions = _table(
    "definitions",
    project_records.DefinitionRecord,
    ForeignKeyConstraint(["project"], ["projects.id"]),
    UniqueConstraint("id"),
    UniqueConstraint("project", "name"),
    Index(None, "owner"),
)

codes = _table(
    "codes",
    project_records.CodeRecord,
    _goes_with("definition", "definitions.id"),
    UniqueConstraint("definition", "digest"),
    Index(None, "owner"),
    key=("definition", "place"),
)

# Searches have no project, and names of their own.
experiments = _table(
    "experiments",
    project_records.ExperimentRecord,
    ForeignKeyConstraint(["project"], ["projects.id"]),
    UniqueConstraint("id"),
    UniqueConstraint("project", "name"),
    *(Index(None, name) for name in ("owner", "state")),
    is_number_unique=True,
)
_without_project = experiments.c.project.is_(None)
Index(
    "uq_experiments_name_without_project",
    experiments.c.name,
    unique=True,
    sqlite_where=_without_project,
    postgresql_where=_without_project,
)

trainings = _table(
    "trainings",
    project_records.TrainingRecord,
    _goes_with("experiment", "experiments.id"),
    ForeignKeyConstraint(["definition"], ["definitions.id"]),
    Index(None, "definition"),
    key=("experiment", "place"),
)

# No foreign keys of job and definition: a run stays known when they have been deleted.
runs = _table(
    "runs",
    project_records.RunRecord,
    _goes_with("experiment", "experiments.id"),
    *(UniqueConstraint(name) for name in ("id", "job")),
    UniqueConstraint("experiment", "place"),
    Index(None, "owner"),
)
