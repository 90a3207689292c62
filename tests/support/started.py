"""Processes of a test, which end with it."""

import contextlib
import socket
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

import psutil


@contextlib.contextmanager
def started(command: Sequence[str], **options: Any) -> Iterator["subprocess.Popen[Any]"]:
    """A process that is killed at the end, its pipes closed, whatever the test finds.

    What a failed test leaves open is found by the garbage collector in another test, which then fails, too.
    """
    with subprocess.Popen(command, **options) as process:
        try:
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def deaf() -> Iterator[str]:
    """The address of a host that answers no attempt to connect: its queue of connections is full."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        yield f"127.0.0.1:{server.getsockname()[1]}"


def gone(pid: int) -> bool:
    """Whether a process has ended, its parent's wait for it aside."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True
