"""How often this process has waited for the other workers: only then it can notice that one was lost."""

import functools
from typing import Any

import horovod.torch as hvd

_count = 0


def note() -> None:
    """A collective is under way; also where this worker is alone, and nothing is sent."""
    global _count
    _count += 1


def count() -> int:
    """How many there have been so far."""
    return _count


@functools.cache
def watch() -> None:
    """Count every wait for an operation of Horovod's from now on, the script's own ones included."""
    library: Any = hvd.mpi_ops.mpi_lib
    wait = library.horovod_torch_wait_and_clear

    @functools.wraps(wait)
    def counted(handle: Any) -> Any:
        note()
        return wait(handle)

    library.horovod_torch_wait_and_clear = counted
