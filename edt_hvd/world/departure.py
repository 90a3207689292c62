"""A quick end for a worker that leaves: somebody waits for its device.

Tearing down an interpreter that has imported torch takes a good part of a second, and many on a busy machine.
"""

import atexit
import os
import sys


def hasten() -> None:
    """Let the process end with code 0 as soon as everything registered so far for its end has run.

    To be called right before the exit: what is registered later runs twice.
    """
    atexit.register(_end)


def _end() -> None:
    atexit.unregister(_end)
    atexit._run_exitfuncs()  # it was registered last, so it runs first: the others are still to come
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # nobody reads on, or the script has closed it
            continue
    os._exit(0)
