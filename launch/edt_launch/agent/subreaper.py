"""Being a parent: of every descendant whose own parent has gone, and woken when a child has ended."""

import contextlib
import ctypes
import signal
import socket
import sys
from collections.abc import Iterator

_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Become the parent of orphaned descendants, to reap and to find them; on Linux alone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@contextlib.contextmanager
def woken_by_children() -> Iterator[socket.socket]:
    """A socket that becomes readable when a child has ended."""
    wakeup, woken = socket.socketpair()
    with wakeup, woken:
        wakeup.setblocking(False)
        woken.setblocking(False)
        signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
        previous = signal.signal(signal.SIGCHLD, lambda *_: None)
        try:
            yield wakeup
        finally:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, previous)


def drain(wakeup: socket.socket) -> None:
    """Wait for the next child."""
    with contextlib.suppress(BlockingIOError):
        wakeup.recv(4096)
