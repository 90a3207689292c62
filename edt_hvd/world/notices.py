"""Notices that this worker is to give up its slot: SIGTERM, or whatever the script itself watches for.

A signal handler must not take a lock that the code it interrupts may hold, so notices go through a queue that
is safe there, and a thread (see `edt_hvd.world.pulse`) passes them on to the launcher.
"""

import os
import queue
import signal
import threading
from types import FrameType

_queue: "queue.SimpleQueue[str]" = queue.SimpleQueue()


def give(reason: str) -> None:
    """Put a notice into the queue. Safe in signal handlers and threads."""
    _queue.put(reason)


def take(timeout: float) -> str | None:
    """The next notice; None if none comes within `timeout` seconds."""
    try:
        return _queue.get(timeout=timeout)
    except queue.Empty:
        return None


def listen() -> None:
    """Take SIGTERM for a notice, unless the script has its own use for it or this is not the main thread."""
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _on_sigterm)
        os.register_at_fork(after_in_child=stop_listening)  # nobody there would pass the notice on


def is_listening() -> bool:
    """Whether SIGTERM is taken for a notice."""
    return signal.getsignal(signal.SIGTERM) is _on_sigterm


def stop_listening() -> None:
    """Let SIGTERM end this process again, if it is still ours and this is the main thread."""
    if is_listening() and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _on_sigterm(number: int, frame: FrameType | None) -> None:
    stop_listening()  # the second one is meant
    give("SIGTERM")
