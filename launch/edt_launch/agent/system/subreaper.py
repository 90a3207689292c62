"""Being a parent: of every descendant whose own parent has gone, and woken when a child has ended."""

import contextlib
import ctypes
import os
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


def reap() -> Iterator[tuple[int, int]]:
    """The children that have ended, each with its exit code; then it is gone."""
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            yield ended[0], os.waitstatus_to_exitcode(ended[1])


def has_children() -> bool:
    """Whether this process has any child, ended or not."""
    with contextlib.suppress(ChildProcessError):
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return True
    return False
