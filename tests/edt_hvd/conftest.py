from collections.abc import Iterator

import pytest

import edt_hvd
from interpreters import Interpreters
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


@pytest.fixture(scope="session")
def interpreters() -> Iterator[Interpreters]:
    """Processes that have imported the library."""
    with Interpreters("import horovod.torch, edt_hvd") as found:
        yield found
