"""A world whose members never change."""

import contextlib
import os
from collections.abc import Iterator

import horovod.torch as hvd

from edt_hvd.world.control import EventSink

MPI_VARIABLES = ("OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_SIZE", "MV2_COMM_WORLD_SIZE")
HOROVOD_VARIABLES = ("HOROVOD_GLOO_RENDEZVOUS_ADDR",)

horovod_init = hvd.init
"""Horovod's own, whatever a script's `hvd.init()` does; see `edt_hvd.initialization.adopt_horovod`."""


class FixedWorld:
    """A world that whoever started the process has fixed: one process, mpirun or horovodrun."""

    generation = 0
    knows_max_size = True
    launcher: EventSink | None = None

    def start(self) -> None:
        """Initialize Horovod for this world."""
        if hvd.is_initialized():
            return
        if any(name in os.environ for name in MPI_VARIABLES + HOROVOD_VARIABLES):
            horovod_init()
        else:
            with _without_mpi():
                horovod_init()

    def join(self) -> None:
        """The world is there already."""

    @property
    def max_size(self) -> int:
        """The number of workers, which is fixed."""
        return int(hvd.size())

    @property
    def slot(self) -> int:
        """This worker's number on its host."""
        return int(hvd.local_rank())

    @property
    def stop_wanted(self) -> bool:
        """Nobody stops this world."""
        return False


@contextlib.contextmanager
def _without_mpi() -> Iterator[None]:
    """For a process that is alone, for which Horovod would start a whole MPI runtime.

    Afterwards the environment is as it was: children may be workers of a world.
    """
    variables = {"HOROVOD_CONTROLLER": "gloo", "HOROVOD_CPU_OPERATIONS": "gloo"}.items()
    added = [name for name, value in variables if os.environ.setdefault(name, value) is value]
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]
