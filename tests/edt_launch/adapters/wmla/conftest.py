from collections.abc import Iterator
from pathlib import Path

import pytest

from asking import Asking
from edt_launch.service.database.store import Store
from played import Player
from world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A service."""
    store = Store.opened(f"sqlite:///{tmp_path}/edt.db")
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
