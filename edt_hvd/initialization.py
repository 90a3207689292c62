"""Initializing the library: connect to the launcher, join the right world, bind the device.

How a process finds its world depends on the program that started it:

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
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import horovod.torch as hvd
import torch

from edt_hvd import observing
from edt_hvd.errors import NotElasticError
from edt_hvd.observing import Observer
from edt_hvd.world import world
from edt_hvd.world.assigned_world import AssignedWorld
from edt_hvd.world.determinism import make_deterministic
from edt_hvd.world.fixed_world import FixedWorld
from edt_hvd.world.horovodrun.horovod_world import HorovodWorld


def init(*, deterministic: bool = False) -> None:
    """Initialize the library: connect to the launcher, if there is one, and bind this worker's device.

    May be called any number of times. Under edt-launch it returns at once, before the other workers
    are known. `rank`, `size` and the elastic function then wait until this worker has joined a world.

    Args:
        deterministic: make torch compute the same bits for the same work on the same kind of machine. An
            operator without a deterministic version raises when it is used. Each worker uses
            OMP_NUM_THREADS threads, or one, unless the script has called `torch.set_num_threads` after
            `import edt_hvd`. If False, the number of threads does not change; edt-launch sets
            OMP_NUM_THREADS=1 for its workers unless its own environment has the variable.

    Raises:
        CoordinatorLostError: the launcher, or Horovod's elastic driver, cannot be reached.
        ValueError: an environment variable is invalid: OMP_NUM_THREADS with `deterministic`, or one of
            those of `edt_hvd.debug.recording`.
        FaultError: the fault script is invalid.
        HorovodBuildError: under a launcher, Horovod was not built by ``make setup``.
    """
    if deterministic:
        make_deterministic()
    if world.is_initialized():
        return
    observing.register(_requested_observers(os.environ))
    recognized = _recognized()
    recognized.start()
    world.set_current(recognized)
    if torch.cuda.is_available():
        torch.cuda.set_device(world.device())


def _requested_observers(environ: Mapping[str, str]) -> Iterator[Observer]:
    """The observers that the environment asks for; nothing of `edt_hvd.debug` is imported for none."""
    if environ.get("EDT_RECORD"):
        from edt_hvd.debug import recording

        yield recording.Recorder(recording.Options.from_environment(environ))
    if environ.get("EDT_FAULTS"):
        from edt_hvd.debug import faults

        yield faults.Injector(Path(environ["EDT_FAULTS"]))


def _recognized() -> world.World:
    if "EDT_COORDINATOR" in os.environ:
        return AssignedWorld(os.environ)
    if os.environ.get("HOROVOD_ELASTIC") == "1":
        return HorovodWorld(os.environ)
    return FixedWorld()


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
        world.current().join()

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
