"""Databases of services, for tests that are not about how one is made."""

import functools
import tempfile
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event

from edt_launch.service.db.engine import Database
from edt_launch.service.db.store import Store


def sqlite_at(path: Path) -> Store:
    """The stores of a new SQLite file. Its tables are made, and statements compiled, once for all tests."""
    path.write_bytes(_new())
    database = Database(f"sqlite:///{path}")
    engine, compiled = database.engine, _compiled()
    engine.dialect, engine._compiled_cache = compiled.dialect, compiled._compiled_cache
    event.listen(engine, "connect", _do_not_wait_for_the_disk)
    return Store(database)


@functools.cache
def _new() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "edt.db"
        Store.opened(f"sqlite:///{path}").close()
        return path.read_bytes()


@functools.cache
def _compiled() -> Engine:
    """An engine for what it has compiled; compiling takes most of the time of a small test."""
    engine = create_engine("sqlite://")
    engine.connect().close()  # it asks what the library can do
    engine.dispose()
    return engine


def _do_not_wait_for_the_disk(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA synchronous=OFF").close()
