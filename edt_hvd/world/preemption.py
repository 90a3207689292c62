"""Preemption notices: this worker is asked to give up its slot, by SIGTERM or by `edt_hvd.leave`.

A signal handler must not take a lock that the code it interrupts may hold. So notices go through a queue that
is safe there, and a thread (`edt_hvd.world.heartbeat`) sends them to the launcher.
"""

import os
import queue
import signal
import sys
import threading
from types import FrameType

_is_ending = threading.Event()
"""Whether the job is being ended, so that SIGTERM is no notice."""

_queue: "queue.SimpleQueue[str]" = queue.SimpleQueue()


def notify(reason: str) -> None:
    """Queue a notice, with a reason to show to the user. Safe in signal handlers and threads."""
    _queue.put(reason)


def next_notice(timeout: float) -> str | None:
    """The next notice; None if none comes within `timeout` seconds."""
    try:
        return _queue.get(timeout=timeout)
    except queue.Empty:
        return None


def listen() -> None:
    """Treat SIGTERM as a notice, unless the script handles it or this is not the main thread."""
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _on_sigterm)
        os.register_at_fork(after_in_child=stop_listening)  # no thread there would send the notice


def is_listening() -> bool:
    """Whether SIGTERM is treated as a notice."""
    return signal.getsignal(signal.SIGTERM) is _on_sigterm


def stop_listening() -> None:
    """Let SIGTERM end this process again, unless the script handles it or this is not the main thread."""
    if is_listening() and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def end() -> None:
    """End this process as SIGTERM does, after the script's handler, `finally` clauses and exit functions."""
    _is_ending.set()
    os.kill(os.getpid(), signal.SIGTERM)


def _on_sigterm(number: int, frame: FrameType | None) -> None:
    stop_listening()  # a second one ends the process
    if not _is_ending.is_set():
        notify("SIGTERM")
    elif not _runs_exit_functions():
        sys.exit(128 + number)


def _runs_exit_functions() -> bool:
    """Whether this process ends as it is: in an exit function, an exception would be printed and ignored."""
    waited_for = (each for each in threading.enumerate() if not each.daemon)
    return not threading.main_thread().is_alive() and not any(each.is_alive() for each in waited_for)
