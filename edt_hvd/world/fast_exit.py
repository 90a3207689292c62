"""A fast exit for a worker that leaves, since its device is needed elsewhere.

Tearing down an interpreter that has imported torch takes a good part of a second, several on a busy machine.
"""

import atexit
import os
import sys


def register() -> None:
    """Have the process end with code 0 once the exit functions registered so far have run.

    Call it right before the exit: functions registered later run twice.
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
