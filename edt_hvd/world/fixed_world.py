"""A world whose members never change."""

import contextlib
import os
from collections.abc import Iterator, Mapping

import horovod.torch as hvd

from edt_hvd.errors import WorldSizeError
from edt_hvd.world.control import EventSink

MPI_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE")
MPI_VARIABLES = (*MPI_SIZES, "PMIX_RANK")
HOROVOD_VARIABLES = ("HOROVOD_GLOO_RENDEZVOUS_ADDR",)

horovod_init = hvd.init
"""Horovod's own, whatever a script's `hvd.init()` does; see `edt_hvd.initialization.adopt_horovod`."""


class FixedWorld:
    """A world that is complete when its processes start: under plain python, mpirun or horovodrun."""

    generation = 0
    launcher: EventSink | None = None
    is_broken = False

    def start(self) -> None:
        """Initialize Horovod for this world.

        Raises:
            WorldSizeError: MPI has started more processes, or fewer, than Horovod has made a world of.
        """
        if hvd.is_initialized():
            return
        if any(name in os.environ for name in MPI_VARIABLES + HOROVOD_VARIABLES):
            horovod_init()
            _check_size(os.environ, hvd.size())
        else:
            with _without_mpi():
                horovod_init()

    def bring_checkpoint(self, folder: str) -> None:
        """Nothing: nobody brings checkpoints without a launcher."""

    def join(self) -> None:
        """Do nothing: `start` has formed the world."""

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
        """False: this world is never formed anew."""
        return False


def _check_size(environ: Mapping[str, str], size: int) -> None:
    """Check that MPI's processes are one world; with another controller each would train alone, unnoticed."""
    for name in MPI_SIZES:
        if name in environ and environ[name] != str(size):
            raise WorldSizeError(name, environ[name], size)


@contextlib.contextmanager
def _without_mpi() -> Iterator[None]:
    """For a process that is alone, for which Horovod would start a whole MPI runtime.

    Afterwards the environment is as it was: children may be workers of a world.
    """
    variables = {"HOROVOD_CONTROLLER": "gloo", "HOROVOD_CPU_OPERATIONS": "gloo"}
    added = {name: value for name, value in variables.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]
