"""The tables, in their newest form. `migrations` brings older databases to it; a test compares the two.

Times are unix seconds. Booleans, enumerations and numbers that may be infinite (stored as null) are turned
into Python's by the stores.
"""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

Number = BigInteger().with_variant(Integer, "sqlite")
"""SQLite counts up only what is called INTEGER."""

users = Table(
    "users",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("is_admin", Boolean, nullable=False),
    Column("created", Float, nullable=False),
    Column("password", Text),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("hash", String(64), nullable=False, unique=True),
    Column("user", ForeignKey("users.name", ondelete="CASCADE"), nullable=False, index=True),
    Column("name", String(64), nullable=False),
    Column("created", Float, nullable=False),
    Column("expires", Float),
    Column("revoked", Float),
    Column("is_session", Boolean, nullable=False),
    # No foreign key: sessions that are over are deleted, and what was made with them is over, too.
    Column("parent", String(16), index=True),
)

shares = Table(
    "shares",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("parent", String(64)),
    Column("weight", Float, nullable=False),
    Column("guarantee", Float, nullable=False),
    Column("limit", Float),
    Column("lends", Boolean, nullable=False),
    Column("policy", String(16), nullable=False),
    Column("half_life", Float, nullable=False),
    Column("service", Float, nullable=False),
    Column("entitlement", Float, nullable=False),
    Column("usage_at", Float, nullable=False),
)

hosts = Table(
    "hosts",
    metadata,
    Column("name", String(255), primary_key=True),
    Column("devices", JSON, nullable=False),
    Column("is_up", Boolean, nullable=False),
    Column("is_draining", Boolean, nullable=False),
    Column("source", String(32), nullable=False),
    Column("reason", Text, nullable=False),
    Column("changed", Float, nullable=False),
)

jobs = Table(
    "jobs",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    Column("id", String(16), nullable=False, unique=True),
    Column("owner", String(64), nullable=False),
    # What the user wants.
    Column("name", String(128), nullable=False),
    Column("command", JSON, nullable=False),
    Column("directory", Text, nullable=False),
    Column("min", Integer, nullable=False),
    Column("max", Integer, nullable=False),
    Column("allowed", JSON(none_as_null=True)),
    Column("priority", Integer, nullable=False),
    Column("weight", Float, nullable=False),
    Column("environment", JSON, nullable=False),
    Column("checkpoint_interval", Float),
    Column("max_restarts", Integer),
    Column("framework", String(16)),
    Column("data_dir", Text),
    Column("wanted", String(16), nullable=False),
    Column("idempotency_key", String(128)),
    Column("fingerprint", String(64), nullable=False),
    # What is.
    Column("state", String(16), nullable=False),
    Column("reason", Text, nullable=False),
    Column("why", JSON(none_as_null=True)),
    Column("exit_code", Integer),
    Column("failure", Text),
    Column("submitted", Float, nullable=False),
    Column("started", Float),
    Column("ended", Float),
    Column("waiting_since", Float),
    Column("running_since", Float),
    Column("resized", Float),
    Column("size", Integer, nullable=False),
    Column("target", Integer, nullable=False),
    Column("share", Float),
    Column("generation", BigInteger, nullable=False),
    Column("held", JSON, nullable=False),
    Column("leaving", JSON, nullable=False),
    Column("launcher_pid", Integer),
    Column("launcher_started", Float),
    Column("restarts", Integer, nullable=False),
    Column("resizes", Integer, nullable=False),
    Column("step", BigInteger),
    Column("total_steps", BigInteger),
    Column("loss", Float),
    Column("throughput", Float),
    Column("service", Float, nullable=False),
    Column("entitlement", Float, nullable=False),
    Column("usage_at", Float, nullable=False),
    Column("resize_cost", Float, nullable=False),
    Column("speedup", JSON, nullable=False),
    Column("notes", JSON, nullable=False),
    UniqueConstraint("owner", "idempotency_key"),
    Index(None, "state", "number"),
    Index(None, "ended"),
    sqlite_autoincrement=True,
)

transitions = Table(
    "transitions",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    Column("time", Float, nullable=False),
    Column("job", ForeignKey("jobs.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("before", String(16)),
    Column("after", String(16), nullable=False),
    Column("reason", Text, nullable=False),
)

allocations = Table(
    "allocations",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    Column("time", Float, nullable=False, index=True),
    # No foreign key: who had which device when stays known when the job has been deleted.
    Column("job", String(16), nullable=False, index=True),
    Column("owner", String(64), nullable=False),
    Column("before", Integer, nullable=False),
    Column("after", Integer, nullable=False),
    Column("devices", JSON, nullable=False),
    Column("reason", Text, nullable=False),
)

memory = Table(
    "memory",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("value", JSON, nullable=False),
)

execs = Table(
    "execs",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    Column("id", String(128), unique=True),
    # None until the job has been written down.
    Column("job", ForeignKey("jobs.id", ondelete="CASCADE"), unique=True),
    Column("driver", String(64), unique=True),
    Column("app", String(128), index=True),
    Column("group", String(128), index=True),
    Column("args", Text, nullable=False),
    sqlite_autoincrement=True,
)

searches = Table(
    "searches",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    Column("id", String(16), nullable=False, unique=True),
    Column("name", String(128), nullable=False, unique=True),
    Column("owner", String(64), nullable=False, index=True),
    Column("definition", JSON, nullable=False),
    Column("file_name", String(255), nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("created", Float, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("template", JSON, nullable=False),
    Column("total", Integer),
    Column("wanted", String(16), nullable=False),
    Column("state", String(16), nullable=False, index=True),
    Column("reason", Text, nullable=False),
    Column("started", Float),
    Column("ended", Float),
    sqlite_autoincrement=True,
)

trials = Table(
    "trials",
    metadata,
    Column("search", ForeignKey("searches.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("point", JSON, nullable=False),
    Column("parameters", JSON, nullable=False),
    Column("budget", BigInteger, nullable=False),
    Column("created", Float, nullable=False),
    Column("exec", String(128)),
    Column("driver", String(128)),
    Column("job", String(16), index=True),
    Column("state", String(16), nullable=False),
    Column("metric", Float),
    Column("reason", Text, nullable=False),
    Column("started", Float),
    Column("ended", Float),
)
