import pytest

import edt_hvd


@pytest.fixture
def alone() -> None:
    """A world of this process only, real Horovod under it."""
    edt_hvd.init()
