"""Fixtures: databases of each kind, and services on them."""

import functools
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

import postgres_server
from databases import sqlite_at
from edt_launch.service.db.engine import parse_url
from edt_launch.service.db.store import Store
from tiers import full
from world import World

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """URLs of a server's databases."""
    try:
        with postgres_server.running() as server:
            yield server.url
    except postgres_server.NoServerError as error:
        pytest.skip(f"no PostgreSQL server: {error}")


@pytest.fixture(params=["sqlite", full("postgresql")])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind; `make test` tries what is not about databases on one of them."""
    return empty_database(request, tmp_path)


def empty_database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database of the kind that the parameter names, empty or for `store` to open."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/edt.db"
    urls: str = request.getfixturevalue("postgresql")
    if "store" in request.fixturenames:
        return _create(urls, f"TEMPLATE {_with_tables(urls)}")
    return _create(urls)


def _create(urls: str, more: str = "") -> str:
    name = f"test{next(_numbers)}"
    engine = create_engine(parse_url(urls.format("postgres")), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name} {more}"))
    engine.dispose()
    return urls.format(name)


@functools.cache
def _with_tables(urls: str) -> str:
    """The name of a database that others are copied from."""
    url = _create(urls)
    Store.opened(url).close()
    return str(parse_url(url).database)


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """A store on each kind of database."""
    sqlite = database_url.removeprefix("sqlite:///")
    opened = Store.opened(database_url) if sqlite == database_url else sqlite_at(Path(sqlite))
    yield opened
    opened.close()


@pytest.fixture
def world(tmp_path: Path, store: Store) -> World:
    """A service on each kind of database."""
    return World(tmp_path / "home", store)
