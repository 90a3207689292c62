"""The cost of waiting at the rendezvous."""

import mmap

import pytest

from edt_hvd.world.standby import Standby, private_memory
from edt_messages import messages


def test_the_cost_of_a_wait() -> None:
    standby = Standby(since=100.0, processor=2.0, private=7)
    assert standby.cost(now=104.0, processor=2.5) == messages.Standby(4.0, 0.5, 7)


def test_memory_that_is_written_to_becomes_private() -> None:
    before = private_memory()
    if before is None:
        pytest.skip("this system does not show private memory")
    size = 2**26
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory[::4096] = bytes(size // 4096)
        after = private_memory()
    assert after is not None
    assert after - before > size // 2
