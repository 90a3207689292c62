"""A child that the kernel kills, with its process group, when its parent ends, however that comes."""

import fcntl
import os
import select
import signal
import sys

_F_SETSIG = getattr(fcntl, "F_SETSIG", 10)  # Linux's number; Python's module has no name for it


def kill_group_when_peer_closes(descriptor: int) -> None:
    """Have this process group killed when the other end of the socket closes; on Linux alone.

    For a child between fork and exec that leads its process group. The socket stays open as long as it lives.
    """
    if sys.platform != "linux":
        return
    fcntl.fcntl(descriptor, fcntl.F_SETOWN, -os.getpid())
    fcntl.fcntl(descriptor, _F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) | os.O_ASYNC)
    poll = select.poll()
    poll.register(descriptor, 0)
    if poll.poll(0):  # closed before the kernel was told
        os._exit(1)
