"""Databases of services, for tests that are not about how one is made."""

import functools
import tempfile
from pathlib import Path

from edt_launch.service.database.store import Store


def sqlite_at(path: Path) -> Store:
    """The stores of a new SQLite file; a fifth of the work of making its tables."""
    path.write_bytes(_new())
    return Store.opened(f"sqlite:///{path}")


@functools.cache
def _new() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "edt.db"
        Store.opened(f"sqlite:///{path}").close()
        return path.read_bytes()
