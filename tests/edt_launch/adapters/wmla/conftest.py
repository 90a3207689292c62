from collections.abc import Iterator
from pathlib import Path

import pytest

from asking import Asking
from databases import sqlite_at
from played import Player
from quick_passwords import quick_passwords
from world import World

__all__ = ["quick_passwords"]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A service."""
    store = sqlite_at(tmp_path / "edt.db")
    yield World(tmp_path / "home", store)
    store.close()


@pytest.fixture
def asking(world: World) -> Asking:
    """Clients of it."""
    return Asking(world)


@pytest.fixture
def player(world: World) -> Player:
    """Plays the loop and the jobs of it."""
    return Player(world.store, world.settings.paths, world.clock.now)
