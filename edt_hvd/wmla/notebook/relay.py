"""Hands the socket to edt-launch on from the driver that it starts to the kernel of a notebook.

The kernel is the driver of its trainings, but no child of edt-launch. So a process that runs in the driver's
place sends the kernel its socket, and lives as long as the kernel wants the training: when that is
interrupted, or dies, this process ends, and edt-launch ends the executors.
"""

import os
import select
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from edt_hvd.wmla import launching
from edt_hvd.wmla.launching import Launcher

VARIABLE = "EDT_WMLA_KERNEL"
"""Names the kernel's socket in the environment of edt-launch; or it is `POOL`."""

POOL = "pool"
"""The kernel is at another machine, maybe: `remote` drives the training."""

_HERE, _DONE = b"h", b"d"


class Kernel:
    """The kernel's end.

    Args:
        path: of the socket, in a folder that is the user's alone.
    """

    def __init__(self, path: Path) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(1)
        self._relay: socket.socket | None = None

    def accept(self, check: Callable[[], None], interval: float = 0.2) -> Launcher:
        """Wait for the launcher; `check` is called meanwhile, and may raise."""
        while not select.select([self._listener], [], [], interval)[0]:
            check()
        self._relay, _ = self._listener.accept()
        _, descriptors, _, _ = socket.recv_fds(self._relay, 1, 1)
        return Launcher(socket.socket(fileno=descriptors[0]))

    def done(self) -> None:
        """Have the relay end with success."""
        assert self._relay is not None
        self._relay.sendall(_DONE)

    def close(self) -> None:
        """Have the relay end, without success unless it was told otherwise."""
        self._listener.close()
        if self._relay is not None:
            self._relay.close()


def relay(environ: Mapping[str, str] = os.environ) -> None:
    """Be the process in the driver's place, until the kernel needs it no more.

    Raises:
        SystemExit: the kernel has interrupted the training, or is gone.
    """
    with socket.socket(socket.AF_UNIX) as kernel:
        kernel.connect(environ[VARIABLE])
        socket.send_fds(kernel, [_HERE], [int(environ[launching.VARIABLE])])
        if kernel.recv(1) != _DONE:
            sys.exit("the notebook has interrupted the training, or its kernel has ended")
