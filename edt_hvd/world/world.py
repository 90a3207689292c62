"""Where this worker stands: rank, size and device, and how it gets into the world and out of it.

A *world* is one set of workers joined by Horovod; every re-formation is a new *generation*. How a
process comes by its world depends on who started it:

===================  ================================  ====================================================
started by           recognised by                     the world
===================  ================================  ====================================================
edt-launch           ``EDT_COORDINATOR``               `AssignedWorld`: assigned by the launcher, repeatedly
horovodrun, elastic  ``HOROVOD_ELASTIC=1``             `HorovodWorld`: assigned by Horovod's elastic driver
horovodrun           ``HOROVOD_GLOO_RENDEZVOUS_ADDR``  `FixedWorld`: all that horovodrun has started
mpirun               ``OMPI_COMM_WORLD_SIZE``, ...     `FixedWorld`: all of MPI_COMM_WORLD
nobody               none of them                      `FixedWorld`: this process alone
===================  ================================  ====================================================
"""

import importlib
import os
from collections.abc import Callable
from typing import Any

import horovod.torch as hvd
import torch

from edt_hvd.errors import NotElasticError, NotInitializedError
from edt_hvd.world import preemption
from edt_hvd.world.assigned_world import AssignedWorld
from edt_hvd.world.determinism import make_deterministic
from edt_hvd.world.elastic_world import ElasticWorld
from edt_hvd.world.fixed_world import FixedWorld
from edt_hvd.world.horovod_world import HorovodWorld

World = FixedWorld | ElasticWorld

_world: World | None = None


def init(*, deterministic: bool = False) -> None:
    """Initialize the library: connect to the launcher, if there is one, and bind this worker's device.

    May be called any number of times. Under edt-launch it returns at once, before the other workers
    are known: whatever needs the world (`rank`, `size`, a collective, the elastic function) waits where
    it is called.

    Args:
        deterministic: have torch compute the same bits for the same work, on the same kind of machine:
            deterministic operators (one that has none raises when it is used) and OMP_NUM_THREADS threads
            a worker, or one. Without it the number of threads is left as it is: edt-launch gives its
            workers OMP_NUM_THREADS=1 if it has none itself.

    Raises:
        CoordinatorLostError: the launcher, or Horovod's elastic driver, cannot be reached.
        ValueError: deterministic, with an OMP_NUM_THREADS that is no positive number.
    """
    global _world
    if deterministic:
        make_deterministic()
    if _world is not None:
        return
    world = _recognized()
    world.start()
    _world = world
    if torch.cuda.is_available():
        torch.cuda.set_device(device())


def _recognized() -> World:
    """The kind of world that this process was started in; see the table above."""
    if "EDT_COORDINATOR" in os.environ:
        return AssignedWorld(os.environ)
    if os.environ.get("HOROVOD_ELASTIC") == "1":
        return HorovodWorld(os.environ)
    return FixedWorld()


def current() -> World:
    """The world as it is, joined or not.

    Raises:
        NotInitializedError: `init` has not been called.
    """
    if _world is None:
        raise NotInitializedError("this call")
    return _world


def _joined(call: str) -> World:
    if _world is None:
        raise NotInitializedError(call)
    _world.join()
    return _world


def rank() -> int:
    """This worker's number in the world, 0 to `size() - 1`. Waits until the worker has joined one."""
    _joined("edt_hvd.rank()")
    return int(hvd.rank())


def size() -> int:
    """The number of workers in the world now. Waits until this worker has joined one."""
    _joined("edt_hvd.size()")
    return int(hvd.size())


def local_rank() -> int:
    """This worker's number among those on its host. Waits until the worker has joined a world."""
    _joined("edt_hvd.local_rank()")
    return int(hvd.local_rank())


def local_size() -> int:
    """The number of workers on this host now. Waits until this worker has joined a world."""
    _joined("edt_hvd.local_size()")
    return int(hvd.local_size())


def is_coordinator() -> bool:
    """Whether this worker is the one that prints, saves and reports (rank 0)."""
    return rank() == 0


def max_size() -> int:
    """The largest number of workers this job may have: ``--max-np``, or `size()` when that is fixed."""
    return current().max_size


def leave(reason: str = "leave()") -> bool:
    """Give up this worker's slot: it finishes its step, the others go on without it, it exits with code 0.

    For scripts that watch for preemption themselves; SIGTERM has the same effect, unless the script handles
    it. May be called from any thread, any number of times, and returns at once. The allocator decides whether
    the job gets another slot; the one that was left is tried again after a minute if it is still allocated.

    Args:
        reason: what to tell the user.

    Returns:
        Whether there is a launcher that can go on without this worker. Under python, mpirun and horovodrun
        the world is not ours to change: nothing happens, and the answer is False.

    Raises:
        NotInitializedError: `init` has not been called.
    """
    if not isinstance(current(), AssignedWorld):
        return False
    preemption.notify(reason)
    return True


def membership() -> int:
    """The generation of the world in force; another number means other ranks and another size."""
    return _joined("edt_hvd.membership()").generation


def device() -> torch.device:
    """The device this worker computes on; it does not change while the worker lives.

    With a device in the allocation only that one is visible, so it is ``cuda:0``; otherwise the slot's
    index on the host chooses. Without CUDA it is the CPU.

    Raises:
        NotInitializedError: `init` has not been called.
    """
    world = current()
    if not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda", world.slot % torch.cuda.device_count())


def adopt_horovod(is_assigned: bool | None = None) -> None:
    """Let a script's own ``hvd.init()`` join the launcher's world instead of forming Horovod's.

    Scripts written for Horovod call it before anything else. Under edt-launch it has to wait for an
    assignment like `rank` and `size` do, and under an elastic horovodrun for the other members of the world.
    What a script imports only when it makes its first optimizer is imported before that, so that the others
    need not wait for it. Nothing changes when another program started the process.

    Args:
        is_assigned: whether worlds are assigned to this process, or to those that are forked from it; by
            default, what its own environment says.
    """
    if is_assigned is None:
        is_assigned = "EDT_COORDINATOR" in os.environ or os.environ.get("HOROVOD_ELASTIC") == "1"
    if not is_assigned:
        return

    def joining_init(*_: Any, **__: Any) -> None:
        init()
        importlib.import_module("torch._dynamo")
        current().join()

    _replace_horovods_init(joining_init)


def refuse_horovod() -> None:
    """Undo `adopt_horovod`, for a script that has nothing to do with this library: its ``hvd.init()`` raises.

    It would find no other worker where edt-launch has started it, or only after a time-out.
    """

    def refused(*_: Any, **__: Any) -> None:
        raise NotElasticError

    _replace_horovods_init(refused)


def _replace_horovods_init(init: Callable[..., None]) -> None:
    for module in (hvd, hvd.mpi_ops, hvd.elastic):
        module.init = init
