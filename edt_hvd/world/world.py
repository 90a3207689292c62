"""Where this worker stands: rank, size and device, and whether it leaves.

A *world* is one set of workers joined by Horovod; every re-formation is a new *generation*.
"""

import horovod.torch as hvd
import torch

from edt_hvd.errors import NotInitializedError
from edt_hvd.world import preemption
from edt_hvd.world.assigned_world import AssignedWorld
from edt_hvd.world.elastic_world import ElasticWorld
from edt_hvd.world.fixed_world import FixedWorld

World = FixedWorld | ElasticWorld

REASON_LENGTH = 1000
"""Characters of a reason to leave that are sent."""

_world: World | None = None


def is_initialized() -> bool:
    """Whether `edt_hvd.init` has been called."""
    return _world is not None


def set_current(world: World) -> None:
    """Make `world` the one that this module's functions speak of."""
    global _world
    _world = world


def current(call: str = "this call") -> World:
    """The world as it is, joined or not, for a function that errors call `call`.

    Raises:
        NotInitializedError: `init` has not been called.
    """
    if _world is None:
        raise NotInitializedError(call)
    return _world


def _joined(call: str) -> World:
    world = current(call)
    world.join()
    return world


def check_collective(call: str) -> None:
    """Check that the script may call a collective here.

    Raises:
        NotInitializedError: `init` has not been called.
        RuntimeError: it is before the elastic function, in a world that workers may join: they run the script
            from its beginning, and would be alone in the collective.
    """
    world = current(call)
    if isinstance(world, ElasticWorld) and not world.entered:
        raise RuntimeError(
            f"{call} before the elastic function: a worker that joins the job later would wait in it for the "
            "others, which are past it; call it inside the function decorated with @edt_hvd.elastic"
        )


def rank() -> int:
    """Return this worker's number in the world, 0 to `size() - 1`. Waits until it has joined one."""
    _joined("edt_hvd.rank()")
    return int(hvd.rank())


def size() -> int:
    """Return the number of workers in the present world. Waits until this worker has joined one."""
    _joined("edt_hvd.size()")
    return int(hvd.size())


def local_rank() -> int:
    """Return this worker's number among those on its host. Waits until it has joined a world."""
    _joined("edt_hvd.local_rank()")
    return int(hvd.local_rank())


def local_size() -> int:
    """Return the number of workers on this host. Waits until this worker has joined a world."""
    _joined("edt_hvd.local_size()")
    return int(hvd.local_size())


def is_coordinator() -> bool:
    """Return whether this worker prints, saves and reports (rank 0). Waits as `rank` does."""
    return rank() == 0


def max_size() -> int:
    """The largest number of workers this job may have: ``--max-np``, or `size()` when that is fixed."""
    return current().max_size


def leave(reason: str = "leave()") -> bool:
    """Give up this worker's slot. It finishes its step and exits with code 0; the others continue.

    Use it in scripts that watch for preemption themselves. SIGTERM has the same effect, unless the script
    handles it. May be called from any thread, any number of times, and returns at once. The allocator decides
    whether the job gets another slot. The slot that was given up is retried after a minute if it is still
    allocated.

    Args:
        reason: shown to the user; its first 1,000 characters.

    Returns:
        Whether the launcher can continue without this worker. Under python, mpirun and horovodrun the call
        has no effect and returns False.

    Raises:
        NotInitializedError: `init` has not been called.
    """
    if not isinstance(current(), AssignedWorld):
        return False
    preemption.notify(str(reason)[:REASON_LENGTH])
    return True


def membership() -> int:
    """The generation of the world in force; another number means other ranks and another size."""
    return _joined("edt_hvd.membership()").generation


def device() -> torch.device:
    """Return the device of this worker. It does not change while the worker lives.

    If the allocation names a device, only that one is visible, as ``cuda:0``. Otherwise the slot's index on
    the host selects it. Without CUDA it is the CPU.

    Raises:
        NotInitializedError: `init` has not been called.
    """
    world = current()
    if not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda", world.slot % torch.cuda.device_count())
