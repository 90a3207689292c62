import pytest

from lab import Lab
from world import World


@pytest.fixture
def lab(world: World) -> Lab:
    return Lab(world)
