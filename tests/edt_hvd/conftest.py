from collections.abc import Iterator

import pytest

import edt_hvd
from places import Place, simulated


@pytest.fixture
def alone() -> None:
    """A world of this process only, real Horovod under it."""
    edt_hvd.init()


@pytest.fixture
def place() -> Iterator[Place]:
    """A world that the test says, and nothing that reduces, under the loaders that it makes."""
    with simulated(Place()) as one:
        yield one
