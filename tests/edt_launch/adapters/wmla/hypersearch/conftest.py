import pytest

from laboratory import Laboratory
from world import World
from worlds import database_url, postgresql, store, world

__all__ = ["database_url", "postgresql", "store", "world"]


@pytest.fixture
def laboratory(world: World) -> Laboratory:
    """A service on each kind of database, with searches."""
    return Laboratory(world)
